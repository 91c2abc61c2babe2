#include "train/update/gradient_pass.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

// Log-probs by the current policy of every token of these micro-batches, in their order, by a forward pass without
// gradients. Of several ranks each computes some micro-batches; the result is bit-identical to one process.
LossArrays arrays_now(Model& model, const ObjectiveInput& in, std::span<const PackedResponses> micros) {
  at::NoGradGuard no_grad;
  LossArrays arrays;
  for (const PackedResponses& micro : micros) arrays.append(in, micro.response);
  for (auto* values : {&arrays.logprob, &arrays.entropy, &arrays.confidence}) {
    values->assign(arrays.place.size(), kFilledByOtherRank);
  }
  const int64_t count = std::ssize(micros);
  const RankShare own = in.among.several() ? share_of(*in.among.ranks, count) : RankShare{0, count};
  std::ptrdiff_t first = 0;
  for (int64_t m = 0; m < count; ++m) {
    const PackedResponses& micro = micros[static_cast<size_t>(m)];
    if (own.first <= m && m < own.last) {
      const HeadStats stats = response_stats(model, micro, in.temperature);
      std::ranges::copy(to_host(stats.logprob), arrays.logprob.begin() + first);
      std::ranges::copy(to_host(stats.entropy), arrays.entropy.begin() + first);
      std::ranges::copy(to_host(stats.confidence), arrays.confidence.begin() + first);
    }
    first += std::ssize(micro.row);
  }
  all_gather(in.among.ranks, {&arrays.logprob, &arrays.entropy, &arrays.confidence});
  return arrays;
}

// What select() says of every micro-batch of the mini-batch under the current policy: one call per micro-batch, or one
// for all.
std::vector<std::vector<uint8_t>> select_now(Model& model, const ObjectiveInput& in,
                                             const std::vector<PackedResponses>& micros) {
  const LossArrays arrays = arrays_now(model, in, micros);
  const bool whole = in.method.needs().selection->scope == Scope::mini;
  std::vector<uint8_t> all(arrays.logprob.size());
  if (whole) select_tokens(in.method, in.config, arrays.view(in), all);
  std::vector<std::vector<uint8_t>> marks;
  std::vector<Sequence> pieces;
  int64_t first = 0;
  for (const PackedResponses& micro : micros) {
    const int64_t count = std::ssize(micro.row);
    const std::span mark = std::span(all).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    if (!whole) select_tokens(in.method, in.config, arrays.view(in, {first, count}, pieces), mark);
    marks.emplace_back(mark.begin(), mark.end());
    first += count;
  }
  return marks;
}

// Micro-batches of some of the mini-batch's responses.
std::vector<PackedResponses> packed_micros(Model& model, const ObjectiveInput& in, std::span<const int64_t> responses) {
  std::vector<PackedResponses> micros;
  for (const auto& some : micro_batches(model, in.batch, responses, in.token_budget, in.among)) {
    micros.push_back(pack_responses(in.batch, some, model.shares_prefixes()));
  }
  return micros;
}

// Records what the loss made of the tokens at these places in the batch.
void note(TokenUpdates& record, std::span<const int64_t> place, const LossInput& in, const LossOutput& out) {
  for (size_t t = 0; t < place.size(); ++t) {
    const double ratio = ratio_of(in.logprob[t], in.old_logprob[t]).value;
    record.ratio[place[t]] = static_cast<float>(ratio);
    record.clipped[place[t]] = out.clipped[t];
  }
}

// The network's forward and backward pass, between which the LM head takes some rows at a time.
class NetworkPass {
 public:
  NetworkPass(Model& model, const PackedResponses& micro)
      : hidden_(response_rows(model, micro)),
        d_hidden_(hidden_.requires_grad() ? at::empty_like(hidden_.detach()) : at::Tensor()) {}
  // Hidden states of these rows, from which the head's gradient is taken.
  at::Tensor rows(const RowRange& part) const {
    return hidden_.detach().narrow(0, part.first, part.count).set_requires_grad(d_hidden_.defined());
  }
  void backward_head(const RowRange& part, const at::Tensor& rows, const HeadStats& stats, const LossOutput& loss,
                     std::span<const TokenSignal> current) {
    std::vector<GivenGradient> terms = {
        {stats.logprob, loss.d_logprob}, {stats.entropy, loss.d_entropy}, {stats.confidence, loss.d_confidence}};
    for (size_t k = 0; k < current.size(); ++k)
      if (current[k].derivatives) terms.push_back({stats.signals[k], loss.d_signal(current[k].key)});
    backward_from(terms);
    if (d_hidden_.defined()) d_hidden_.narrow(0, part.first, part.count).copy_(rows.grad());
  }
  void backward() {
    if (d_hidden_.defined()) hidden_.backward(d_hidden_);
  }

 private:
  const at::Tensor hidden_, d_hidden_;  // [n, D]
};

}  // namespace

bool selects_now(const Method& method) {
  std::optional<Selection> selection = method.needs().selection;
  return selection && selection->scope != Scope::step;
}

GradientPass::GradientPass(Model& model, const ObjectiveInput& in)
    : model_(model), in_(in), current_(in.method.needs().current) {
  std::vector<int64_t> learning, zero_gradient;
  for (int64_t index : in.responses) (has_zero_gradient(in, index) ? zero_gradient : learning).push_back(index);
  learning_ = packed_micros(model, in, learning);
  zero_gradient_ = packed_micros(model, in, zero_gradient);
  if (selects_now(in.method)) marks_ = select_now(model, in, learning_);
  LossArrays whole;                // counts alone matter here
  whole.append(in, in.responses);  // empty ones too: Oat's mean counts them
  for (const auto& mark : marks_) whole.mark.insert(whole.mark.end(), mark.begin(), mark.end());
  total_ = denominators(in.config, whole.view(in), in.response_limit);
  const size_t N = in.batch.token.size();
  if (in.record != nullptr) updates = {std::vector<float>(N), std::vector<uint8_t>(N)};
}

void GradientPass::learn(int64_t micro) {
  learn_from(learning_[micro], marks_.empty() ? std::vector<uint8_t>() : marks_[micro]);
}

void GradientPass::learn_from(const PackedResponses& micro, std::vector<uint8_t> mark) {
  NetworkPass network(model_, micro);
  LossArrays arrays;
  arrays.append(in_, micro.response);
  if (!mark.empty()) arrays.mark = std::move(mark);
  const TokenShares shares = token_shares(in_.config, arrays.view(in_), total_);  // 1 / sum |o_i|, where DAPO's
  const int64_t at_once = in_.head_rows > 0 ? in_.head_rows : model_.head().rows_at_once();
  for (const RowRange& part : head_parts(in_.batch, micro, at_once, !in_.method.whole_responses())) {
    const at::Tensor rows = network.rows(part);
    const std::vector<int32_t> target(micro.target.begin() + part.first,
                                      micro.target.begin() + part.first + part.count);
    // log pi(o_it), H_it, C_it
    const HeadStats stats = model_.head().stats(rows, target, in_.temperature, current_);
    arrays.append(stats, current_);
    const LossOutput loss = losses(arrays, shares, part);  // min(r A, clip(r) A), where DAPO's, and its derivatives
    network.backward_head(part, rows, stats, loss, current_);
  }
  network.backward();
}

void GradientPass::read(int64_t index) {
  const PackedResponses& micro = zero_gradient_[index];
  if (!in_.skip_silent) return learn_from(micro, {});
  LossArrays arrays;
  arrays.append(in_, micro.response);
  for (const TokenSignal& signal : current_) arrays.signals[signal.key].assign(arrays.place.size(), 0);  // not read
  if (in_.on_policy) {
    arrays.append_old(in_, micro.response);
  } else {
    at::NoGradGuard no_grad;
    arrays.append(response_stats(model_, micro, in_.temperature), {});
  }
  losses(arrays, token_shares(in_.config, arrays.view(in_), total_), {0, std::ssize(arrays.place)});
}

LossOutput GradientPass::losses(const LossArrays& arrays, const TokenShares& shares, const RowRange& range) {
  const LossInput part = arrays.view(in_, range, pieces_);
  LossOutput out = buffer_.view(range.count, current_);
  objective_gradients(in_.method, in_.config, part, shares, range.first, out, metrics);
  if (in_.record != nullptr) note(updates, std::span(arrays.place).subspan(range.first, range.count), part, out);
  return out;
}

}  // namespace ucas

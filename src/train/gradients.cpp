#include "train/gradients.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "objective/clipped_ratio.h"
#include "objective/rollout_correction.h"
#include "train/gradient_exchange.h"
#include "train/logprobs.h"
#include "train/sharded_gradients.h"

namespace ucas {

namespace {

bool only_marked(const Method& method) {
  std::optional<Selection> selection = method.needs().selection;
  return selection && selection->only_marked;
}

// Whether the method selects by the current policy, before every update.
bool selects_now(const Method& method) {
  std::optional<Selection> selection = method.needs().selection;
  return selection && selection->scope != Scope::step;
}

// Host arrays of some whole sequences, in packed order: what a LossInput points into.
struct LossArrays {
  std::vector<Sequence> sequences;
  std::vector<int64_t> place;  // of each token in the batch
  std::vector<float> logprob, entropy, confidence, old_logprob, rollout_logprob, advantage, ref_logprob;
  std::vector<float> divergence;  // empty where the method needs none
  std::vector<uint8_t> mark;

  void append(const ObjectiveInput& in, std::span<const int64_t> responses) {
    for (int64_t index : responses) {
      const Response& o = in.batch.responses[index];
      sequences.push_back({static_cast<int64_t>(old_logprob.size()), o.length, index, o.group});
      for (int64_t t = o.first; t < o.first + o.length; ++t) place.push_back(t);
      auto take = [&](auto from, auto& to) {
        if (from.empty()) return;
        auto part = from.subspan(o.first, o.length);
        to.insert(to.end(), part.begin(), part.end());
      };
      take(std::span(in.batch.old_logprob), old_logprob);
      take(std::span(sampler_logprob(in.config, in.batch)), rollout_logprob);
      take(in.advantage, advantage);
      take(std::span(in.batch.ref_logprob), ref_logprob);
      take(in.step_mark, mark);
    }
  }
  // The policy as it was when the batch's signals were read off it.
  void append_old(const ObjectiveInput& in, std::span<const int64_t> responses) {
    for (int64_t index : responses) {
      const Response& o = in.batch.responses[index];
      auto take = [&](const std::vector<float>& from, std::vector<float>& to) {
        auto part = Batch::tokens(from, o);
        to.insert(to.end(), part.begin(), part.end());
      };
      take(in.batch.old_logprob, logprob);
      take(in.batch.entropy, entropy);
      take(in.batch.confidence, confidence);
    }
  }
  void append(const HeadStats& stats) {
    auto add = [](const at::Tensor& from, std::vector<float>& to) {
      std::vector<float> values = to_host(from);
      to.insert(to.end(), values.begin(), values.end());
    };
    add(stats.logprob, logprob);
    add(stats.entropy, entropy);
    add(stats.confidence, confidence);
  }
  LossInput view(const ObjectiveInput& in) const {
    return {.sequences = sequences,
            .logprob = logprob,
            .entropy = entropy,
            .confidence = confidence,
            .old_logprob = old_logprob,
            .rollout_logprob = rollout_logprob,
            .advantage = advantage,
            .ref_logprob = ref_logprob,
            .mark = mark,
            .seed = in.seed,
            .objective = &in.config,
            .only_marked = only_marked(in.method),
            .divergence = divergence};
  }
  // Some of the tokens; `pieces` keeps what of the sequences is among them.
  LossInput view(const ObjectiveInput& in, const RowRange& range, std::vector<Sequence>& pieces) const {
    LossInput part = view(in);
    for (auto* values : {&part.logprob, &part.entropy, &part.confidence, &part.old_logprob, &part.rollout_logprob,
                         &part.advantage, &part.ref_logprob, &part.divergence})
      if (!values->empty()) *values = values->subspan(range.first, range.count);
    if (!mark.empty()) part.mark = part.mark.subspan(range.first, range.count);
    pieces.clear();
    for (const Sequence& s : sequences) {
      const int64_t begin = std::max(s.first, range.first);
      const int64_t end = std::min(s.first + s.length, range.first + range.count);
      if (begin < end) pieces.push_back({begin - range.first, end - begin, s.response, s.group});
    }
    part.sequences = pieces;
    return part;
  }
};

// What the policy has moved at these rows of the arrays since the step's first update.
void append_divergence(const ObjectiveInput& in, const Head& head, const at::Tensor& rows, const RowRange& range,
                       LossArrays& arrays) {
  const std::optional<LikelyDivergence> need = in.method.needs().divergence;
  if (!need) return;
  const std::span place = std::span(arrays.place).subspan(range.first, range.count);
  UCAS_CHECK(in.on_policy || in.likely != nullptr, "the divergence needs the distribution of before the update");
  std::vector<float> now(place.size());
  if (!in.on_policy) now = divergence_since(*in.likely, need->kind, head, rows, place, in.temperature);
  arrays.divergence.insert(arrays.divergence.end(), now.begin(), now.end());
}

// What select() says of every micro-batch of the mini-batch under the current policy: a forward pass without gradients,
// then one call per micro-batch or one for all.
std::vector<std::vector<uint8_t>> select_now(Model& model, const ObjectiveInput& in,
                                             const std::vector<PackedResponses>& micros) {
  at::NoGradGuard no_grad;
  bool whole = in.method.needs().selection->scope == Scope::mini;
  std::vector<std::vector<uint8_t>> marks;
  LossArrays arrays;
  for (const PackedResponses& micro : micros) {
    if (!whole) arrays = {};
    arrays.append(in, micro.response);
    arrays.append(response_stats(model, micro, in.temperature));
    marks.emplace_back(micro.row.size());
    if (!whole) select_tokens(in.method, in.config, arrays.view(in), marks.back());
  }
  if (!whole) return marks;
  std::vector<uint8_t> all(arrays.logprob.size());
  select_tokens(in.method, in.config, arrays.view(in), all);
  auto next = all.begin();
  for (std::vector<uint8_t>& mark : marks) {
    std::copy_n(next, mark.size(), mark.begin());
    next += static_cast<std::ptrdiff_t>(mark.size());
  }
  return marks;
}

// Micro-batches of some of the mini-batch's responses.
std::vector<PackedResponses> packed_micros(const ObjectiveInput& in, std::span<const int64_t> responses, bool share) {
  std::vector<PackedResponses> micros;
  const int64_t budget = Among{in.ranks, in.ordered}.budget_of(in.token_budget, in.batch, responses);
  for (const auto& some : micro_batches(in.batch, responses, budget, share)) {
    micros.push_back(pack_responses(in.batch, some, share));
  }
  return micros;
}

// An update by nothing is one all the same: moments fade and weights decay, so each parameter needs its gradient of 0.
void define_gradients(Model& model) {
  for (NamedTensor& p : model.trainable()) {
    at::Tensor& gradient = p.tensor.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(p.tensor);
  }
}

// Notes what the loss made of tokens that stand at these places in the batch.
void note(TokenUpdates& record, std::span<const int64_t> place, const LossInput& in, const LossOutput& out) {
  for (size_t t = 0; t < place.size(); ++t) {
    const double ratio = ratio_of(in.logprob[t], in.old_logprob[t]).value;
    record.ratio[place[t]] = static_cast<float>(ratio);
    record.clipped[place[t]] = out.clipped[t];
  }
}

}  // namespace

std::vector<uint8_t> select_in_step(const Method& method, const ObjectiveConfig& config, const Batch& batch,
                                    std::span<const float> advantage, uint64_t seed) {
  std::optional<Selection> selection = method.needs().selection;
  if (!selection || selection->scope != Scope::step) return {};
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    const Response& o = batch.responses[i];
    if (o.trained) sequences.push_back({o.first, o.length, static_cast<int64_t>(i), o.group});
  }
  const LossInput in{.sequences = sequences,
                     .logprob = batch.old_logprob,
                     .entropy = batch.entropy,
                     .confidence = batch.confidence,
                     .old_logprob = batch.old_logprob,
                     .rollout_logprob = sampler_logprob(config, batch),
                     .advantage = advantage,
                     .ref_logprob = batch.ref_logprob,
                     .seed = seed,
                     .objective = &config};
  std::vector<uint8_t> mark(batch.token.size());
  select_tokens(method, config, in, mark);
  return mark;
}

bool is_silent(const ObjectiveInput& in, int64_t response) {
  if (selects_now(in.method) || in.method.needs().zero_advantages) return false;
  if (in.config.entropy_coeff != 0 || in.config.kl_coeff != 0) return false;
  if (in.config.accumulation == Accumulation::verl_legacy) return false;  // its weights depend on the micro-batches
  const Response& o = in.batch.responses[response];
  const std::vector<float>& rollout = sampler_logprob(in.config, in.batch);
  for (int64_t t = o.first; t < o.first + o.length; ++t) {
    if (in.advantage[t] != 0 || std::isnan(in.batch.old_logprob[t])) return false;
    if (!rollout.empty() && std::isnan(rollout[t])) return false;
  }
  return true;
}

LossMetrics accumulate_gradients(Model& model, const ObjectiveInput& in) {
  std::vector<int64_t> loud, silent;
  for (int64_t index : in.responses) (is_silent(in, index) ? silent : loud).push_back(index);
  std::vector<PackedResponses> micros = packed_micros(in, loud, model.shares_prefixes());
  const bool by_current = selects_now(in.method);
  std::vector<std::vector<uint8_t>> marks;
  if (by_current) marks = select_now(model, in, micros);

  LossArrays whole;                // counts alone matter here: the weights are known before the first backward pass
  whole.append(in, in.responses);  // empty ones too: Oat's mean counts them
  for (const auto& mark : marks) whole.mark.insert(whole.mark.end(), mark.begin(), mark.end());
  Denominators total = denominators(in.config, whole.view(in), in.response_limit);
  LossMetrics metrics;
  LossBuffer buffer;
  const size_t N = in.batch.token.size();
  const bool several = in.ranks != nullptr && !in.ranks->alone();
  TokenUpdates noted;  // by this rank
  if (several && in.record != nullptr) noted = {std::vector<float>(N), std::vector<uint8_t>(N)};
  std::vector<Sequence> pieces;
  auto losses = [&](const LossArrays& arrays, const TokenShares& shares, const RowRange& range) {
    const LossInput part = arrays.view(in, range, pieces);
    LossOutput out = buffer.view(range.count);
    objective_gradients(in.method, in.config, part, shares, range.first, out, metrics);
    if (in.record != nullptr)
      note(several ? noted : *in.record, std::span(arrays.place).subspan(range.first, range.count), part, out);
    return out;
  };
  // The LM head forward and backward for some rows at a time, then the network backward for all.
  auto learn_from = [&](const PackedResponses& micro, const std::vector<uint8_t>* mark) {
    const at::Tensor hidden = response_rows(model, micro);
    const at::Tensor d_hidden = hidden.requires_grad() ? at::empty_like(hidden.detach()) : at::Tensor();
    LossArrays arrays;
    arrays.append(in, micro.response);
    if (mark != nullptr) arrays.mark = *mark;
    const TokenShares shares = token_shares(in.config, arrays.view(in), total);
    const bool cut = !in.method.whole_responses();
    const int64_t at_once = in.head_rows > 0 ? in.head_rows : model.head().rows_at_once();
    for (const RowRange& part : head_parts(in.batch, micro, at_once, cut)) {
      const at::Tensor rows = hidden.detach().narrow(0, part.first, part.count).set_requires_grad(d_hidden.defined());
      const std::vector<int32_t> target(micro.target.begin() + part.first,
                                        micro.target.begin() + part.first + part.count);
      HeadStats stats = model.head().stats(rows, target, in.temperature);
      arrays.append(stats);
      append_divergence(in, model.head(), rows, part, arrays);
      LossOutput out = losses(arrays, shares, part);
      backward_from(
          {{stats.logprob, out.d_logprob}, {stats.entropy, out.d_entropy}, {stats.confidence, out.d_confidence}});
      if (d_hidden.defined()) d_hidden.narrow(0, part.first, part.count).copy_(rows.grad());
    }
    if (d_hidden.defined()) hidden.backward(d_hidden);
  };
  auto learn = [&](RankShare share) {
    for (int64_t m = share.first; m < share.last; ++m) learn_from(micros[m], by_current ? &marks[m] : nullptr);
  };
  const std::vector<PackedResponses> quiet = packed_micros(in, silent, model.shares_prefixes());
  auto read = [&](RankShare share) {
    for (int64_t m = share.first; m < share.last; ++m) {
      const PackedResponses& micro = quiet[m];
      if (!in.skip_silent) {
        learn_from(micro, nullptr);
        continue;
      }
      LossArrays arrays;  // for what is logged alone
      arrays.append(in, micro.response);
      if (in.method.needs().divergence) arrays.divergence.resize(arrays.place.size());  // of advantage 0: not read
      if (in.on_policy) {
        arrays.append_old(in, micro.response);
      } else {
        at::NoGradGuard no_grad;
        arrays.append(response_stats(model, micro, in.temperature));
      }
      losses(arrays, token_shares(in.config, arrays.view(in), total), {0, static_cast<int64_t>(arrays.place.size())});
    }
  };
  const auto loud_count = static_cast<int64_t>(micros.size()), quiet_count = static_cast<int64_t>(quiet.size());
  if (!several) {
    learn({0, loud_count});
    read({0, quiet_count});
    if (micros.empty()) define_gradients(model);
    return metrics;
  }
  auto learn_mine = [&] { learn(share_of(*in.ranks, loud_count)); };
  auto read_mine = [&] { read(share_of(*in.ranks, quiet_count)); };
  if (in.shards != nullptr) {
    UCAS_CHECK(in.skip_silent, "sharded gradients must come from passes that learn");
    auto one = [&](int64_t m) { learn({m, m + 1}); };
    metrics = learn_sharded(in, loud_count, metrics, one);
    if (!in.ordered) {
      read_mine();
      metrics = sum_of(*in.ranks, metrics);
    } else {
      metrics = in_turn(*in.ranks, {}, metrics, read_mine);
    }
    if (in.record != nullptr) share_record(in, noted);
    return metrics;
  }
  define_gradients(model);
  std::vector<at::Tensor> gradients;
  for (NamedTensor& p : model.trainable()) gradients.push_back(p.tensor.grad());
  if (in.ordered) {
    metrics = in_turn(*in.ranks, gradients, metrics, learn_mine);
    metrics = in_turn(*in.ranks, {}, metrics, read_mine);
  } else {
    learn_mine();
    read_mine();
    in.ranks->all_reduce("summing gradients", gradients);
    metrics = sum_of(*in.ranks, metrics);
  }
  if (in.record != nullptr) share_record(in, noted);
  return metrics;
}

}  // namespace ucas

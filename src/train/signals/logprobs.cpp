#include "train/signals/logprobs.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/process/activity.h"
#include "hf/parameters.h"
#include "rollout/config.h"
#include "train/signals/balanced_pack.h"

namespace ucas {

PackedResponses pack_responses(const Batch& batch, std::span<const int64_t> responses, bool share_prompts,
                               int64_t tail_limit) {
  PackedResponses out;
  for (int64_t index : responses)
    if (batch.responses[index].length > 0) out.response.push_back(index);
  std::vector<int64_t> tail_row;
  const auto group_at = [&](size_t i) {
    return i < out.response.size() ? batch.responses[out.response[i]].group : int64_t{-1};
  };
  int64_t shared = -1;  // the sequence that the responses of this group follow
  for (size_t i = 0; i < out.response.size(); ++i) {
    const Response& o = batch.responses[out.response[i]];
    const std::vector<int32_t>& prompt = batch.groups[o.group].prompt;
    const std::span<const int32_t> before = std::span(prompt).first(prompt.size() - 1),
                                   last = std::span(prompt).last(1);
    const std::span<const int32_t> token = Batch::tokens(batch.token, o);
    std::vector<int32_t> woven;  // inserts are context: they have rows, and no targets
    if (!o.inserts.empty()) woven = with_inserts(token, o.inserts);
    const std::span<const int32_t> whole = woven.empty() ? token : woven;
    const bool tail = o.length_with_inserts() < tail_limit;
    const std::span<const int32_t> read = tail ? whole : whole.first(whole.size() - 1);
    if (i == 0 || group_at(i - 1) != o.group) {
      shared = share_prompts && !before.empty() && group_at(i + 1) == o.group ? out.packed.append(before) : -1;
    }
    if (shared >= 0) {
      out.packed.append(last, read, shared);
    } else {
      out.packed.append(prompt, read);
    }
    const auto end = static_cast<int64_t>(out.packed.token.size());
    const int64_t first = end - static_cast<int64_t>(read.size()) - 1;  // the row of the prompt's last token
    for (int64_t t = 0; t < o.length; ++t) {
      out.row.push_back(first + t + inserted_before(o.inserts, t));
      out.target.push_back(token[t]);
      out.token_index.push_back(o.first + t);
    }
    if (!tail) continue;
    out.tail.push_back(out.response[i]);
    tail_row.push_back(end - 1);
  }
  out.row.insert(out.row.end(), tail_row.begin(), tail_row.end());
  out.target.resize(out.row.size());
  return out;
}

std::vector<std::vector<int64_t>> micro_batches(const Batch& batch, std::span<const int64_t> responses,
                                                int64_t token_budget, bool share_prompts) {
  std::vector<int64_t> lengths, prefix, kept;
  std::vector<uint8_t> shares;
  for (int64_t index : responses) {
    const Response& o = batch.responses[index];
    if (o.length == 0) continue;
    shares.push_back(share_prompts && !kept.empty() && batch.responses[kept.back()].group == o.group);
    kept.push_back(index);
    lengths.push_back(o.length_with_inserts());
    prefix.push_back(static_cast<int64_t>(batch.groups[o.group].prompt.size()) - 1);
  }
  std::vector<std::vector<int64_t>> micros;
  for (const MicroBatch& micro : pack(lengths, token_budget, prefix, shares)) {
    micros.emplace_back(kept.begin() + micro.first, kept.begin() + micro.last);
  }
  return micros;
}

std::vector<std::vector<int64_t>> micro_batches(const Batch& batch, int64_t token_budget, bool share_prompts) {
  return micro_batches(batch, indices(0, static_cast<int64_t>(batch.responses.size())), token_budget, share_prompts);
}

std::vector<PackItem> pack_items(const ModelConfig& shape, const Batch& batch, std::span<const int64_t> responses,
                                 bool head) {
  const double row = block_multiply_adds(shape), target = head ? head_multiply_adds(shape) : 0;
  const auto rows = [&](int64_t first, int64_t last) {  // of a sequence
    double keys = 0;
    for (int64_t i = first; i < last; ++i) keys += keys_in_sight(shape, i);
    return static_cast<double>(last - first) * row + keys * key_multiply_adds(shape);
  };
  std::vector<PackItem> items;
  for (int64_t index : responses) {
    const Response& o = batch.responses[index];
    if (o.length == 0) continue;
    const auto prefix = static_cast<int64_t>(batch.groups[o.group].prompt.size()) - 1;
    const int64_t tokens = o.length_with_inserts();
    items.push_back({.index = index,
                     .group = o.group,
                     .tokens = tokens,
                     .prefix = prefix,
                     .work = rows(prefix, prefix + tokens) + static_cast<double>(o.length) * target,
                     .prefix_work = rows(0, prefix)});
  }
  return items;
}

std::vector<std::vector<int64_t>> micro_batches(Model& model, const Batch& batch, std::span<const int64_t> responses,
                                                int64_t token_budget, const Among& among, bool head) {
  const bool share = model.shares_prefixes();
  if (!among.several() && among.reduce == Reduce::sum) return micro_batches(batch, responses, token_budget, share);
  const std::vector<PackItem> items = pack_items(model.config(), batch, responses, head);
  if (among.reduce == Reduce::micro) return pack_for_waves(items, token_budget, share).parts;
  return balanced_pack(items, among.ranks->size(), token_budget, share).parts;
}

std::vector<RowRange> head_parts(const Batch& batch, const PackedResponses& micro, int64_t rows, bool cut) {
  std::vector<int64_t> lengths;
  for (int64_t index : micro.response) lengths.push_back(batch.responses[index].length);
  std::vector<RowRange> parts;
  int64_t next = 0;
  for (const MicroBatch& part : pack(lengths, rows)) {
    const int64_t end = next + part.tokens;
    for (int64_t count; next < end; next += count) {
      count = cut ? std::min(rows, end - next) : end - next;
      parts.push_back({next, count});
    }
  }
  return parts;
}

std::vector<int64_t> indices(int64_t first, int64_t last) {
  std::vector<int64_t> list(last - first);
  std::iota(list.begin(), list.end(), first);
  return list;
}

at::Tensor response_rows(Model& model, const PackedResponses& packed) {
  progressed();
  at::Tensor hidden = model.hidden(packed.packed);
  return at::index_select(hidden, 0, at::tensor(packed.row, at::kLong).to(hidden.device()));
}

HeadStats response_stats(Model& model, const PackedResponses& packed, double temperature,
                         std::span<const TokenSignal> signals) {
  return model.head().stats(response_rows(model, packed), packed.target, temperature, signals);
}

std::vector<float> to_host(const at::Tensor& values) {
  at::Tensor host = values.detach().to(at::kCPU, at::kFloat).contiguous();
  const float* data = host.const_data_ptr<float>();
  return std::vector<float>(data, data + host.numel());
}

void backward_from(const std::vector<GivenGradient>& terms) {
  at::Tensor root;
  for (const auto& [values, gradient] : terms) {
    if (root.defined() && std::ranges::all_of(gradient, [](float g) { return g == 0; })) continue;
    const at::Tensor host =
        at::from_blob(const_cast<float*>(gradient.data()), {static_cast<int64_t>(gradient.size())}, at::kFloat);
    const at::Tensor term = at::sum(at::mul(values, host.to(values.device())));
    root = root.defined() ? at::add(root, term) : term;
  }
  root.backward();
}

void all_gather(Ranks* ranks, const std::vector<std::vector<float>*>& parts) {
  if (ranks == nullptr || ranks->alone()) return;
  std::vector<at::Tensor> tensors;
  for (std::vector<float>* part : parts) {
    if (!part->empty())
      tensors.push_back(at::from_blob(part->data(), {static_cast<int64_t>(part->size())}, at::kFloat));
  }
  ranks->all_reduce("sharing log-probs", tensors);
}

std::span<const std::vector<int64_t>> own_micro_batches(std::span<const std::vector<int64_t>> micros, Ranks* ranks) {
  if (ranks == nullptr) return micros;
  const RankShare own = share_of(*ranks, static_cast<int64_t>(micros.size()));
  return micros.subspan(static_cast<size_t>(own.first), static_cast<size_t>(own.last - own.first));
}

namespace {

// The statistics of every token of this rank's responses, micro-batch after micro-batch.
void for_each_own_micro(Model& model, const Batch& batch, std::span<const std::vector<int64_t>> all, Ranks* ranks,
                        double temperature, int64_t tail_limit, std::span<const TokenSignal> signals,
                        const std::function<void(const PackedResponses&, const HeadStats&)>& use) {
  at::NoGradGuard no_grad;
  for (const auto& micro : own_micro_batches(all, ranks)) {
    PackedResponses packed = pack_responses(batch, micro, model.shares_prefixes(), tail_limit);
    use(packed, response_stats(model, packed, temperature, signals));
  }
}

void scatter(const PackedResponses& packed, const std::vector<float>& values, std::vector<float>& to) {
  for (size_t k = 0; k < packed.token_index.size(); ++k) to[packed.token_index[k]] = values[k];
}

}  // namespace

void compute_signals(Model& model, Batch& batch, double temperature, int64_t token_budget, int64_t tail_limit,
                     std::span<const TokenSignal> signals, Ranks* ranks) {
  std::vector<TokenSignal> computed;
  std::ranges::copy_if(signals, std::back_inserter(computed),
                       [](const TokenSignal& s) { return s.compute != nullptr; });
  std::vector<std::vector<float>*> arrays = {&batch.old_logprob, &batch.entropy, &batch.confidence, &batch.logit};
  for (const TokenSignal& signal : computed) arrays.push_back(&batch.signal(signal.key));
  for (auto* values : arrays) values->assign(batch.token.size(), kFilledByOtherRank);
  std::vector<float> tails(batch.responses.size(), kFilledByOtherRank);
  auto use = [&](const PackedResponses& packed, const HeadStats& stats) {
    scatter(packed, to_host(stats.logprob), batch.old_logprob);
    scatter(packed, to_host(stats.entropy), batch.entropy);
    scatter(packed, to_host(stats.logit), batch.logit);
    for (size_t k = 0; k < computed.size(); ++k)
      scatter(packed, to_host(stats.signals[k]), batch.signal(computed[k].key));
    std::vector<float> confidence = to_host(stats.confidence);
    scatter(packed, confidence, batch.confidence);
    for (size_t k = 0; k < packed.tail.size(); ++k) tails[packed.tail[k]] = confidence[packed.token_index.size() + k];
  };
  const auto micros = micro_batches(batch, token_budget, model.shares_prefixes());
  for_each_own_micro(model, batch, micros, ranks, temperature, tail_limit, computed, use);
  arrays.push_back(&tails);
  all_gather(ranks, arrays);
  batch.has_tails = tail_limit > 0;
  // 0 without a tail: -0.0 + 0.0.
  for (size_t i = 0; i < tails.size(); ++i) batch.responses[i].tail_confidence = tails[i] + 0.0f;
}

int64_t accept_sampled(Model& model, Batch& batch, double temperature, int64_t token_budget, int64_t step) {
  const auto n = static_cast<size_t>(batch.token_count());
  UCAS_CHECK(batch.entropy.size() == n && batch.confidence.size() == n && batch.logit.size() == n,
             "the sampler said something of every token");
  std::vector<int64_t> some;
  const auto count = static_cast<int64_t>(batch.responses.size());
  for (int64_t i = step % std::min(kCheckedOf, std::max<int64_t>(1, count)); i < count; i += kCheckedOf) {
    some.push_back(i);
  }
  int64_t compared = 0, different = 0;
  for_each_own_micro(model, batch, micro_batches(batch, some, token_budget, model.shares_prefixes()), nullptr,
                     temperature, 0, {}, [&](const PackedResponses& packed, const HeadStats& stats) {
                       const auto compare = [&](const at::Tensor& trainer, const std::vector<float>& sampler) {
                         const std::vector<float> values = to_host(trainer);
                         for (size_t k = 0; k < packed.token_index.size(); ++k) {
                           different += std::bit_cast<uint32_t>(values[k]) !=
                                        std::bit_cast<uint32_t>(sampler[packed.token_index[k]]);
                         }
                       };
                       compare(stats.logprob, batch.sampler_logprob());
                       compare(stats.entropy, batch.entropy);
                       compare(stats.confidence, batch.confidence);
                       compare(stats.logit, batch.logit);
                       compared += static_cast<int64_t>(packed.token_index.size());
                     });
  if (different > 0 || compared == 0) return different > 0 ? -1 : 0;
  batch.old_logprob = batch.sampler_logprob();
  batch.has_tails = false;
  return compared;
}

std::vector<float> compute_logprobs(Model& model, const Batch& batch, double temperature, int64_t token_budget,
                                    Ranks* ranks) {
  std::vector<float> logprob(batch.token.size(), kFilledByOtherRank);
  const auto micros = micro_batches(batch, token_budget, model.shares_prefixes());
  for_each_own_micro(
      model, batch, micros, ranks, temperature, 0, {},
      [&](const PackedResponses& packed, const HeadStats& s) { scatter(packed, to_host(s.logprob), logprob); });
  all_gather(ranks, {&logprob});
  return logprob;
}

Mismatch mismatch(const Batch& batch) {
  Mismatch m;
  for (size_t i = 0; i < batch.old_logprob.size(); ++i) {
    double difference = std::abs(static_cast<double>(batch.sampler_logprob()[i]) - batch.old_logprob[i]);
    m.max = difference <= m.max ? m.max : difference;  // a NaN stays
    m.mean += difference;
    m.share += difference > 1e-3 ? 1 : 0;
  }
  auto n = static_cast<double>(std::max<size_t>(1, batch.old_logprob.size()));
  m.mean /= n;
  m.share /= n;
  return m;
}

}  // namespace ucas

#include "train/update/likely_tokens.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/likeliest.h"
#include "kernels/lm_head.h"
#include "model/tensor/parallel.h"
#include "plan/model_memory.h"
#include "train/signals/logprobs.h"

namespace ucas {

namespace {

constexpr int64_t kExactInFloat = int64_t{1} << 24;  // ids up to here are told to other ranks as floats

// The logits of one row, and the log-prob of any of its tokens by the expression that sampler and trainer share.
struct RowDistribution {
  std::span<const float> logits;
  kernels::RowStats stats;
  float inverse_temperature;

  RowDistribution(const float* row, int64_t vocab, float inverse)
      : logits(row, static_cast<size_t>(vocab)),
        stats(kernels::stats_of_row(row, vocab, inverse)),
        inverse_temperature(inverse) {}
  double z(int32_t id) const { return static_cast<double>(logits[id] * inverse_temperature); }
  float logprob(int32_t id) const {
    return kernels::token_stats(stats, logits[id], inverse_temperature, static_cast<int64_t>(logits.size())).logprob;
  }
};

// use(i, distribution) for every row, on any thread.
template <class Use>
void each_distribution(const Head& head, const at::Tensor& rows, double temperature, const Use& use) {
  at::NoGradGuard no_grad;
  const int64_t count = rows.size(0), vocab = head.weight().compute.size(0);
  const auto inverse = static_cast<float>(1 / temperature);
  for (int64_t first = 0; first < count; first += kDistributionsAtOnce) {
    const int64_t some = std::min(kDistributionsAtOnce, count - first);
    const at::Tensor logits = head.logits(rows.detach().narrow(0, first, some)).to(at::kCPU).contiguous();
    const float* data = logits.const_data_ptr<float>();
    parallel_for(some, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) use(first + i, RowDistribution(data + i * vocab, vocab, inverse));
    });
  }
}

void likeliest(std::span<const float> logits, std::span<int32_t> ids) {
  std::vector<kernels::LikelyToken> kept(ids.size());
  kernels::keep_likeliest(logits.data(), std::ssize(logits), 0, std::ssize(ids), kept.data(), 0);
  std::ranges::transform(kept, ids.begin(), &kernels::LikelyToken::id);
}

// use(packed, row, distribution) for every token of the batch that this rank reads, on any thread.
template <class Use>
void each_distribution_of(Model& model, const Batch& batch, double temperature, int64_t token_budget, Ranks* ranks,
                          const Use& use) {
  const auto all = micro_batches(batch, token_budget, model.shares_prefixes());
  for (const auto& micro : own_micro_batches(all, ranks)) {
    const PackedResponses packed = pack_responses(batch, micro, model.shares_prefixes());
    each_distribution(
        model.head(), response_rows(model, packed), temperature,
        [&](int64_t row, const RowDistribution& distribution) { use(packed, static_cast<size_t>(row), distribution); });
  }
}

// The token's log-prob among those of p >= min_p max p; -inf where it is none of them.
float min_p_logprob(const RowDistribution& distribution, int32_t id, double min_p) {
  const double largest = distribution.stats.max, least = largest + std::log(min_p), own = distribution.z(id);
  if (own < least) return -std::numeric_limits<float>::infinity();
  double sum = 0;
  for (float logit : distribution.logits) {
    const double z = static_cast<double>(logit * distribution.inverse_temperature);
    if (z >= least) sum += std::exp(z - largest);
  }
  return static_cast<float>(own - largest - std::log(sum));
}

}  // namespace

LikelyTokens likely_tokens(Model& model, const Batch& batch, int64_t count, double temperature, int64_t token_budget,
                           Ranks* ranks) {
  at::NoGradGuard no_grad;
  const int64_t vocab = model.head().weight().compute.size(0);
  LikelyTokens out{.count = std::min(count, vocab)};
  const auto K = static_cast<size_t>(out.count), cells = batch.token.size() * K;
  out.id.resize(cells);
  out.logprob.assign(cells, -0.0f);  // x + -0.0 has the bits of x: what another rank reads is added to it
  each_distribution_of(model, batch, temperature, token_budget, ranks,
                       [&](const PackedResponses& packed, size_t row, const RowDistribution& distribution) {
                         const size_t at = static_cast<size_t>(packed.token_index[row]) * K;
                         const std::span ids = std::span(out.id).subspan(at, K);
                         likeliest(distribution.logits, ids);
                         for (size_t k = 0; k < K; ++k) out.logprob[at + k] = distribution.logprob(ids[k]);
                       });
  if (ranks == nullptr || ranks->alone()) return out;
  UCAS_CHECK(vocab <= kExactInFloat, "token ids must be exact in f32");
  std::vector<float> ids(out.id.begin(), out.id.end());
  const auto all = [&](std::vector<float>& values) {
    return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat);
  };
  const std::vector<at::Tensor> parts = {all(ids), all(out.logprob)};
  ranks->all_reduce("sharing likely tokens", parts);
  std::ranges::transform(ids, out.id.begin(), [](float id) { return static_cast<int32_t>(id); });
  return out;
}

std::vector<float> divergence_since(const LikelyTokens& likely, Divergence kind, const Head& head,
                                    const at::Tensor& rows, std::span<const int64_t> place, double temperature) {
  UCAS_CHECK(rows.size(0) == static_cast<int64_t>(place.size()), "expected one batch index per row");
  const auto K = static_cast<size_t>(likely.count);
  std::vector<float> out(place.size());
  each_distribution(head, rows, temperature, [&](int64_t row, const RowDistribution& distribution) {
    const size_t at = static_cast<size_t>(place[row]) * K;
    std::vector<float> now(K);
    for (size_t k = 0; k < K; ++k) now[k] = distribution.logprob(likely.id[at + k]);
    out[row] = static_cast<float>(cell_divergence(kind, std::span(likely.logprob).subspan(at, K), now));
  });
  return out;
}

std::vector<float> min_p_logprobs(Model& model, const Batch& batch, double min_p, double temperature,
                                  int64_t token_budget, Ranks* ranks) {
  UCAS_CHECK(min_p > 0 && min_p <= 1, "min-p is a share of the largest probability");
  at::NoGradGuard no_grad;
  std::vector<float> out(batch.token.size(), kNotMine);
  each_distribution_of(model, batch, temperature, token_budget, ranks,
                       [&](const PackedResponses& packed, size_t row, const RowDistribution& distribution) {
                         out[static_cast<size_t>(packed.token_index[row])] =
                             min_p_logprob(distribution, packed.target[row], min_p);
                       });
  all_gather(ranks, {&out});
  return out;
}

}  // namespace ucas

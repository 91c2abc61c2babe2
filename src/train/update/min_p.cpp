#include "train/update/min_p.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/lm_head.h"
#include "model/tensor/parallel.h"
#include "plan/model_memory.h"
#include "train/signals/logprobs.h"

namespace ucas {

namespace {

// The logits of one row, scaled by the expression that sampler and trainer share.
struct RowDistribution {
  std::span<const float> logits;
  kernels::RowStats stats;
  float inverse_temperature;

  RowDistribution(const float* row, int64_t vocab, float inverse)
      : logits(row, static_cast<size_t>(vocab)),
        stats(kernels::stats_of_row(row, vocab, inverse)),
        inverse_temperature(inverse) {}
  double z(int32_t id) const { return static_cast<double>(logits[id] * inverse_temperature); }
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

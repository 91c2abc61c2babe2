// Sampler and trainer give a token slightly different probabilities where they run different arithmetic. The remedy is
// an option of the objective, for every method. With r_t = exp(old_t - rollout_t), the
// difference held in +-20:
//   tis = token           w_t = min(r_t, C)                      truncated importance sampling (verl, Oat: C = 2)
//         sequence        w_t = min(prod_t r_t, C)               one weight per response
//         sequence_mask   w_t = prod_t r_t, or 0 if above C      TRL (C = 3)
// Where the sampler truncates (top-p, top-k) it has two log-probs of a token: under the whole vocabulary, as the
// trainer has, and under the renormalised distribution that was sampled from. rollout_t is the first, so that r_t is 1
// where the arithmetic agrees.
// A weight multiplies the loss of a token and its derivatives, not its share of the mini-batch, and neither the entropy
// bonus nor the KL loss. It depends on the old policy alone, so it is known before the first backward pass.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "objective/loss/loss.h"

namespace ucas {

struct RolloutCorrection {
  std::vector<float> weight;    // [n]; empty: 1 everywhere
  std::vector<uint8_t> capped;  // [n], as `weight`: cut at C, or 0 for being above it
};
RolloutCorrection rollout_correction(const ObjectiveConfig& objective, std::span<const Sequence> sequences,
                                     std::span<const float> old_logprob, std::span<const float> rollout_logprob);

// rollout/tis_weight_mean and rollout/tis_clipped_share of a step (docs/metrics.md); none where it is off.
std::vector<std::pair<std::string, double>> correction_metrics(const ObjectiveConfig& objective, const Batch& batch);

}  // namespace ucas

// Sampler and trainer give a token slightly different probabilities where they run different arithmetic. Two remedies,
// both options of the objective, for every method. With r_t = exp(old_t - rollout_t), the
// difference held in +-20:
//   tis = token           w_t = min(r_t, C)                      truncated importance sampling (verl, Oat: C = 2)
//         sequence        w_t = min(prod_t r_t, C)               one weight per response
//         sequence_mask   w_t = prod_t r_t, or 0 if above C      TRL (C = 3)
//   reject = token_ratio      leaves out tokens with r_t outside [low, high]
//            sequence_ratio   responses with prod_t r_t outside [low, high]
//            geometric_ratio  responses with (prod_t r_t)^(1/L) outside [low, high]
//            token_k3         tokens with k3_t = r_t - 1 - ln r_t above high
//            sequence_k3      responses with mean_t k3_t above high
// Where the sampler truncates (top-p, top-k) it has two log-probs of a token: under the whole vocabulary, as the
// trainer has, and under the renormalised distribution that was sampled from. With correct_by = whole rollout_t is the
// first, so that r_t is 1 where the arithmetic agrees; with sampled it is the second, and r_t also holds the kept mass.
// A weight multiplies the loss of a token and its derivatives, not its share of the mini-batch, and neither the entropy
// bonus nor the KL loss. A rejected token leaves both sum and denominators. Both depend on the old policy alone, so
// they are known before the first backward pass.
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
  std::vector<float> weight;      // [n]; empty: 1 everywhere
  std::vector<uint8_t> capped;    // [n], as `weight`: cut at C, or 0 for being above it
  std::vector<uint8_t> rejected;  // [n]; empty: none
};
RolloutCorrection rollout_correction(const ObjectiveConfig& objective, std::span<const Sequence> sequences,
                                     std::span<const float> old_logprob, std::span<const float> rollout_logprob);

// The sampler's log-probs that the objective asks for, [N].
const std::vector<float>& sampler_logprob(const ObjectiveConfig& objective, const Batch& batch);

// rollout/tis_weight_mean, rollout/tis_clipped_share and rollout/rejected_share of a step (docs/metrics.md); those of
// options that are off are left out.
std::vector<std::pair<std::string, double>> correction_metrics(const ObjectiveConfig& objective, const Batch& batch);

}  // namespace ucas

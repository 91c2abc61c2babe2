// KL in the reward (algorithms: Sec. 15): every token pays beta KL(old, ref) before any advantage is computed, with a
// fixed beta or one that a proportional controller steers. Fed by old_logprob and ref_logprob; feeds advantages.
// Plain functions. Threads: any.
#pragma once

#include <cstdint>

#include "core/batch.h"
#include "methods/method.h"

namespace ucas {

// Fills Batch::reward_kl = beta KL(old, ref) and Response::kl_penalty, its sum, and takes that off Response::reward.
// Returns the mean over responses with tokens of their mean KL (without beta): what the controller watches. Its sum
// runs over sorted values, so the order of responses cannot change a bit.
double take_kl_off_reward(Batch& batch, KlEstimator estimator, double beta);

// beta (1 + clip(kl / target - 1, +-0.2) rows / horizon)
double adapted_kl_coeff(double beta, double kl, double target, double horizon, int64_t rows);

}  // namespace ucas

// Estimators of KL(pi || pi_ref) from one sampled token, d = lp - lp_ref, with the derivative to use as a loss
// (Eq. 1's last term is k3). k1 has expected gradient 0: it is for rewards, not for losses. k3_plus has the value of k3
// and the gradient of k2, which is unbiased on-policy.
//
// And KL in the reward: every token pays beta KL(old, ref) before any advantage is computed, with a fixed beta or one
// that a proportional controller steers. Fed by old_logprob and ref_logprob; feeds advantages.
#pragma once

#include <cstdint>

#include "core/batch.h"
#include "objective/config.h"

namespace ucas {

struct KlTerm {
  double value = 0;
  double d_logprob = 0;
};
KlTerm kl_term(KlEstimator estimator, double logprob, double ref_logprob);

// Fills Batch::reward_kl = beta KL(old, ref) and Response::kl_penalty, its sum, and takes that off Response::reward.
// Returns the mean over responses with tokens of their mean KL (without beta). Its sum
// runs over sorted values, so the order of responses cannot change a bit.
double take_kl_off_reward(Batch& batch, KlEstimator estimator, double beta);

}  // namespace ucas

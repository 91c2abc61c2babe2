// Estimators of KL(pi || pi_ref) from one sampled token, d = lp - lp_ref, with the derivative to use as a loss
// (Eq. 1's last term is k3). k1 has expected gradient 0: it is for rewards, not for losses. k3_plus has the value of k3
// and the gradient of k2, which is unbiased on-policy.
//
// And KL in the reward: every token loses beta KL(old, ref) before any advantage is computed, with a fixed beta or one
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

// Adaptive entropy control (Skywork-OR1): the coefficient c of the entropy bonus rises by a step after every rollout
// step whose policy has less than the target entropy and falls by a step otherwise. It is 0 above the target.
//   alpha_k = c_k [e_k <= target],  c_{k+1} = c_k + step if e_k < target, max(0, c_k - step) otherwise
// Fed by train/loop/trainer, once per rollout step; c is kept in the checkpoint (train/state/train_state).

constexpr double kEntropyStep = 0.005;

struct EntropyBonus {
  double now = 0;   // alpha_k, of this rollout step's updates
  double next = 0;  // c_{k+1}
};

// c: c_k, on the first step objective.entropy_coeff. entropy: e_k, mean over the step's tokens of the old policy's H. A
// NaN moves nothing.
EntropyBonus entropy_bonus(const ObjectiveConfig& config, double c, double entropy);

}  // namespace ucas

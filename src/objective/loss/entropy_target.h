// Adaptive entropy control (Skywork-OR1): the coefficient c of the entropy bonus rises by a step after every rollout
// step whose policy has less than the target entropy and falls by a step otherwise. It is 0 above the target.
//   alpha_k = c_k [e_k <= target],  c_{k+1} = c_k + step if e_k < target, max(0, c_k - step) otherwise
// Fed by train/loop/trainer, once per rollout step; c goes on in the checkpoint (train/state/train_state).
#pragma once

#include "objective/config.h"

namespace ucas {

constexpr double kEntropyStep = 0.005;

struct EntropyBonus {
  double now = 0;   // alpha_k, of this rollout step's updates
  double next = 0;  // c_{k+1}
};

// c: c_k, on the first step objective.entropy_coeff. entropy: e_k, mean over the step's tokens of the old policy's H. A
// NaN moves nothing.
EntropyBonus entropy_bonus(const ObjectiveConfig& config, double c, double entropy);

}  // namespace ucas

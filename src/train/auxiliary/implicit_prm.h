// The implicit process reward model of a policy (PRIME; docs/paper.md): phi, which learns from the verdicts
// once per step, and its frozen start. Fills Batch::prm_logratio, q_it = lp_phi - lp_ref at temperature 1. Its loss is
// objective/advantage/reward_terms.h. Made by make_implicit_prm() (train/auxiliary/auxiliary_model.h).
#pragma once

#include <cstdint>
#include <span>

#include "core/batch.h"
#include "model/model.h"
#include "objective/advantage/reward_terms.h"
#include "sharding/gradient_schedule.h"

namespace ucas {

// Adds the gradient of the cross-entropy over the whole batch to phi's parameters and returns what the loss saw. Each
// response's share is 1 / n, known before the first backward pass, so the cut into micro-batches changes nothing.
// Of several ranks each has d_token of what it worked off.
PrmLoss accumulate_prm_gradients(Model& phi, const Batch& batch, std::span<const float> ref_logprob, double beta,
                                 int64_t token_budget, const Among& among = {});

}  // namespace ucas

// The implicit reward model's loss over a whole batch: what train/auxiliary/implicit_prm makes of single responses is
// checked against it.
#pragma once

#include "core/batch.h"
#include "objective/advantage/reward_terms.h"

namespace ucas::testing {

// The same from Batch::prm_logratio.
PrmLoss implicit_prm_loss(const Batch& batch, double beta);

}  // namespace ucas::testing

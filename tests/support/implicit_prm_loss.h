// The implicit reward model's loss over a whole batch: what train/implicit_prm makes of single responses is checked
// against it.
#pragma once

#include <vector>

#include "core/batch.h"

namespace ucas::testing {

// The mean over the responses that have tokens, from Batch::prm_logratio. Empty ones say nothing about phi.
struct PrmLoss {
  double loss = 0, accuracy = 0;
  std::vector<double> d_token;  // [B] d loss / d lp_phi of each token of a response
};
PrmLoss implicit_prm_loss(const Batch& batch, double beta);

}  // namespace ucas::testing

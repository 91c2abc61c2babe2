// The gradient of one mini-batch, planned before its first backward pass: which responses learn, which have zero
// gradient, the micro-batches of both, the tokens that the method selects by the current policy, and the denominators
// of Eq. 11. So a token's weight in the loss depends neither on how the mini-batch is cut nor on which process computes
// which micro-batch. Borrows model and input. Threads: one caller.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "objective/aggregate.h"
#include "train/signals/logprobs.h"
#include "train/update/gradients.h"
#include "train/update/loss_arrays.h"

namespace ucas {

// Whether the method selects tokens by the current policy, before every update.
bool selects_now(const Method& method);

class GradientPass {
 public:
  GradientPass(Model& model, const ObjectiveInput& in);

  int64_t learning() const { return std::ssize(learning_); }            // micro-batches with a backward pass
  int64_t zero_gradient() const { return std::ssize(zero_gradient_); }  // micro-batches that are logged alone
  // Forward, the loss of Eq. 11 and backward of one micro-batch: adds d loss / d parameter to the gradients.
  void learn(int64_t micro);
  // Whether read() makes a forward pass.
  // What is logged of a response with zero gradient; its loss is 0 under any policy.
  void read(int64_t micro);

  LossMetrics metrics;   // of the micro-batches worked off so far
  TokenUpdates updates;  // the same, [N] each; empty where none is recorded

 private:
  void learn_from(const PackedResponses& micro, std::vector<uint8_t> mark);
  LossOutput losses(const LossArrays& arrays, const TokenShares& shares, const RowRange& range);

  Model& model_;
  const ObjectiveInput& in_;
  const std::vector<TokenSignal> current_;  // of the policy as it is
  std::vector<PackedResponses> learning_, zero_gradient_;
  std::vector<std::vector<uint8_t>> marks_;  // of each learning micro-batch; empty where none is selected now
  Denominators total_;
  LossBuffer buffer_;
  std::vector<Sequence> pieces_;
};

}  // namespace ucas

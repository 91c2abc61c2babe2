// One optimizer update's gradient (Eq. 1, 2, 4, 11): forward, the method's per-token loss, backward, over
// micro-batches. The gradient does not depend on how the mini-batch is cut: every token's weight in the loss is known
// before the first backward pass. Autograd is used for the network alone; the loss itself and its derivatives are plain
// arithmetic in methods/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "methods/method.h"
#include "model/model.h"
#include "objective/aggregate.h"
#include "sharding/gradient_schedule.h"

namespace ucas {

// What became of each token of a batch at the last update that used it.
struct TokenUpdates {
  std::vector<float> ratio;      // [N] pi_theta / pi_old, before the update
  std::vector<uint8_t> clipped;  // [N] LossOutput::clipped; 0 where the token was not counted
};

struct ObjectiveInput {
  const Batch& batch;
  std::span<const float> advantage;    // [N] of the whole batch
  std::span<const int64_t> responses;  // the mini-batch
  const Method& method;
  const ObjectiveConfig& config;
  double temperature = 1;
  int64_t response_limit = 1;  // what the ..._norm aggregations divide by
  int64_t token_budget = 4096;
  uint64_t seed = 0;                        // differs by step and mini-batch; for methods that sample
  std::span<const uint8_t> step_mark = {};  // [N] of select_in_step(); empty for all other scopes
  TokenUpdates* record = nullptr;           // filled for the mini-batch's tokens; its arrays are [N] already
  bool on_policy = false;                   // the weights are still those that the batch's old signals were read from
  int64_t head_rows = 0;                    // at most so many at a time; 0: as many as the head wants (else for tests)
  bool skip_silent = true;                  // false: every response takes its forward and backward pass (for tests)
  Among among = {};                         // the ranks that share the update
};

// Whether the update learns nothing from the response under any current policy: every advantage is 0, the method's loss
// then is 0, and no other term has a gradient. Such responses stay in every denominator and every logged mean, but take
// no backward pass, and on-policy no forward pass either. Not one with a NaN in its log-probs.
bool has_zero_gradient(const ObjectiveInput& in, int64_t response);

// What a method of selection scope `step` marks in the batch, [N]: once, from the old policy's signals. Empty for
// others.
std::vector<uint8_t> select_in_step(const Method& method, const ObjectiveConfig& config, const Batch& batch,
                                    std::span<const float> advantage);

// Adds d loss / d parameter to the gradients: all of it, or this rank's shards of it. Returns what the loss saw of the
// whole mini-batch. gradient_pass.h has the arithmetic, gradient_schedule.h says which micro-batches are this
// process's.
LossMetrics accumulate_gradients(Model& model, const ObjectiveInput& in);

}  // namespace ucas

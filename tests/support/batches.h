// Small batches and loss inputs for tests of methods. Owns what the spans point into.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "methods/method.h"
#include "objective/aggregate.h"

namespace ucas::testing {

// One response, before packing; all arrays as long as `logit`.
struct Row {
  int64_t group = 0;
  float reward = 0;
  std::vector<float> confidence, logit;
};

// Rows of one group must be neighbours; group numbers need not be dense.
Batch make_batch(const std::vector<Row>& rows);

// Token arrays of a set of sequences at update time. Any array may be left empty where it is not used.
struct LossCase {
  std::vector<Sequence> sequences;
  std::vector<float> logprob, old_logprob, ref_logprob, rollout_logprob, advantage, entropy;
  std::vector<float> margin, min_p_logprob;  // as set by add(): 0 from ln 1/3 on and lp below; old + 0.1, at most 0
  std::vector<uint8_t> mark;

  // The sampler's log-probs are set to `old`. Three neighbours are a group, unless said otherwise afterwards.
  void add(const std::vector<float>& lp, const std::vector<float>& old, const std::vector<float>& A,
           const std::vector<float>& H = {}, const std::vector<float>& ref = {});
  // The sequences [first, first + count) alone, as a micro-batch would hold them.
  LossCase slice(size_t first, size_t count) const;
  LossInput input() const;
  int64_t tokens() const { return static_cast<int64_t>(logprob.size()); }
};

// The method's select() over the whole of it (unless it is marked already), then objective_gradients over micro-batches
// of `size` sequences (0 = all at once), concatenated.
struct ObjectiveResult {
  LossMetrics metrics;
  double loss = 0;  // sum of scaled losses
  std::vector<float> d_logprob, d_entropy, d_likely;
};
ObjectiveResult run_objective(const Method& method, const ObjectiveConfig& objective, const LossCase& mini, size_t size,
                              int64_t response_limit = 1);

}  // namespace ucas::testing

// Random batches with every signal that any method may ask for, and their shuffled twins.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/batch.h"
#include "methods/method.h"
#include "support/batches.h"

namespace ucas::testing {

// One response, before packing. `tag` says which of its group it is, wherever it stands.
struct FullRow {
  int tag = 0;
  Response response;
  std::vector<int32_t> token;
  std::vector<float> rollout, old, ref, teacher, reward_kl, value, q, entropy, confidence, logit, margin;
};
using FullGroup = std::vector<FullRow>;

struct Extent {
  int64_t groups = 4, most_rows = 6, most_tokens = 9;
  bool extreme = false;    // values at the edge of what can be
  bool reward_kl = false;  // part of the reward is a KL penalty
};
// Groups of 1 to most_rows responses of 0 to most_tokens tokens; some truncated, some unreadable.
std::vector<FullGroup> random_groups(Rng& rng, const Extent& extent);
Batch pack(const std::vector<FullGroup>& groups);

// Advantages by (problem, tag): the same key for the same response in any order. Also checks that nothing is NaN or
// infinite, in the advantages, the returns and the trace.
using Keyed = std::map<std::pair<int64_t, int>, std::vector<float>>;
Keyed advantages_of(const Method& method, const std::vector<FullGroup>& groups);

// A mini-batch some updates old, with log-ratios of about 0.3; empty sequences among them.
LossCase random_mini_batch(Rng& rng, size_t sequences, bool extreme = false);

}  // namespace ucas::testing

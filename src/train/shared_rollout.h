// Sampling by all ranks: each takes every size-th prompt, and all get all responses, as if one process had drawn them.
// A response depends on its prompt and key alone, so on CPUs they have the same bits.
#pragma once

#include <memory>

#include "sampling/rollout.h"
#include "train/ranks.h"

namespace ucas {

// Both are borrowed.
std::unique_ptr<Rollout> share_rollout(Rollout& own, Ranks& ranks);

}  // namespace ucas

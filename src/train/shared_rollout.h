// Sampling by all ranks: each takes every size-th prompt, and all get all responses, as if one process had drawn them.
// A response depends on its prompt and key alone, so on CPUs they have the same bits, whoever draws it: where `claims`,
// the last quarter of the prompts is nobody's at first, and who has ended half of its responses takes one after
// another; who has ended all goes on with responses of others (train/moved_responses.h).
#pragma once

#include <functional>
#include <memory>

#include "sampling/rollout.h"
#include "train/ranks.h"

namespace ucas {

// Both are borrowed. `claims` is for a rollout that others may join (RolloutRequest::more).
std::unique_ptr<Rollout> share_rollout(Rollout& own, Ranks& ranks, bool claims);

// For work that rank 0 does, where others only sample: what it runs all run, some prompts at a time, until it calls
// dismiss_followers(). Nobody but rank 0 gets responses. They may not ask RolloutRequest::ends.
std::unique_ptr<Rollout> lead_rollout(Rollout& own, Ranks& ranks);
void dismiss_followers(Ranks& ranks);
void follow_rollout(Rollout& own, Ranks& ranks, const std::function<bool()>& should_stop);

}  // namespace ucas

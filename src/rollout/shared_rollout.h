// Sampling on all ranks: each takes every size-th prompt, and all get all responses, as from one process. A response
// depends on its prompt and key alone, so on CPUs its bits do not depend on the rank. With `claims` the last quarter of
// the prompts is unassigned at first: a rank that has finished half of its responses takes one prompt after another
// from an atomic counter.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rollout/rollouter.h"
#include "sharding/ranks.h"

namespace ucas {

// Both are borrowed. `claims` is for a rollout that others may join (RolloutFeed::more).
std::unique_ptr<Rollouter> share_rollout(Rollouter& own, Ranks& ranks, bool claims);

// For work that rank 0 does, where others only sample: what it runs all run, some prompts at a time, until it calls
// dismiss_followers(). Only rank 0 gets responses. They may not ask RolloutLimits::ends.
std::unique_ptr<Rollouter> lead_rollout(Rollouter& own, Ranks& ranks);
void dismiss_followers(Ranks& ranks);
// Other work of theirs, as text whose first character is no '{': `other` of follow_rollout() gets it.
void tell_followers(Ranks& ranks, const std::string& work);
void follow_rollout(Rollouter& own, Ranks& ranks, const std::function<bool()>& should_stop,
                    const std::function<void(const std::string& work)>& other = nullptr);

}  // namespace ucas

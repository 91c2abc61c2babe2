// Sampling on all ranks: each takes every size-th prompt, and all get all responses, as from one process. A response
// depends on its prompt and key alone, so on CPUs its bits do not depend on the rank. Responses travel as bytes, bit
// for bit: numbers as they lie in memory, as all who read them are the same program. Without inserts: an environment is
// refused under several ranks.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rollout/rollouter.h"
#include "sharding/ranks.h"

namespace ucas {

// Borrows both.
std::unique_ptr<Rollouter> share_rollout(Rollouter& own, Ranks& ranks);

std::string sampled_bytes(const std::vector<Episode>& responses);
// Error(ErrorKind::truncated) naming `where` for bytes that are not whole.
std::vector<Episode> read_sampled(std::string_view bytes, const std::string& where);

}  // namespace ucas

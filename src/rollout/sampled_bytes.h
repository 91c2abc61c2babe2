// Episode responses as bytes, bit for bit: what ranks send each other, and what a checkpoint keeps of the responses to
// the next step's prompts. Numbers as they lie in memory: all who read them are the same program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rollout/rollouter.h"

namespace ucas {

std::string sampled_bytes(const std::vector<Episode>& responses);
// Error(ErrorKind::truncated) naming `where` for bytes that are not whole.
std::vector<Episode> read_sampled(std::string_view bytes, const std::string& where);

}  // namespace ucas

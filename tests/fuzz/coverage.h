// The edges that the input under way has taken.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucas::fuzz {

constexpr int kEdgeBits = 17;
constexpr size_t kEdges = size_t{1} << kEdgeBits;
extern uint8_t seen_now[kEdges];  // how often, up to 255

}  // namespace ucas::fuzz

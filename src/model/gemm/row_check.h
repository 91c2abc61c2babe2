// What docs/numerics.md promises of GEMMs, tried on the machine at hand.
#pragma once

#include <string>

namespace ucas {

// Rows of a width of 896 (Qwen2.5-0.5B) alone and among 240 others, on one thread and on all, in f32 and bf16:
// "equal bits in f32 and bf16", or where they differ.
std::string check_rows();

}  // namespace ucas

// Which edges of the program an input has taken, by what g++ calls at each of them (-fsanitize-coverage=trace-pc, in a
// build with UCAS_FUZZ). Without it nothing is ever seen and the fuzzer goes on blindly. Compiled without it.
#include "fuzz/coverage.h"

namespace ucas::fuzz {

uint8_t seen_now[kEdges];

}  // namespace ucas::fuzz

extern "C" __attribute__((visibility("default"))) void __sanitizer_cov_trace_pc() {
  static thread_local uintptr_t last = 0;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  const uintptr_t edge = ((here >> 1) ^ (last << 3)) * 0x9e3779b97f4a7c15ULL >> (64 - ucas::fuzz::kEdgeBits);
  last = here & 0xffffff;
  uint8_t& count = ucas::fuzz::seen_now[edge];
  if (count < 255) ++count;
}

// Ways to compute the same on a device that are timed against each other (bench/gpu_sitting/README.md), from
// UCAS_TRY=name=value,.. in the environment. The first value of each is what runs without it; another may change the
// last bits of a result, and none of them is a setting of a run.
//   head        again    logits of a tile at a time, computed again for their gradient
//               kept     those of a part of the rows are kept for it: the same numbers, one GEMM less, more memory
//               whole    kept, and both GEMMs of their gradient take all columns at once
//   wgrad       split    the gradient of each parameter by a GEMM of its own
//               joined   of those that lie side by side (q, k and v; gate and up) by one
//   reductions  f32      parts of a split GEMM are added in f32
//               bf16     LibTorch's default
//   launch      early    a kernel is put on the device while the one before it still runs (from sm_90 on)
//               plain
#pragma once

#include <string_view>

namespace ucas {

enum class HeadLogits { again, kept, whole };

struct Variants {
  HeadLogits head = HeadLogits::again;
  bool joined_gradients = false;
  bool bf16_reductions = false;
  bool early_launch = true;
};

// Throws Error(ErrorKind::config) at the first word that is none of the above.
Variants parse_variants(std::string_view text);
// Those of the process, read once; or those that a test puts in their place.
const Variants& variants();
class VariantsForTest {
 public:
  explicit VariantsForTest(const Variants& variants);
  ~VariantsForTest();
  VariantsForTest(const VariantsForTest&) = delete;
  VariantsForTest& operator=(const VariantsForTest&) = delete;
};

}  // namespace ucas

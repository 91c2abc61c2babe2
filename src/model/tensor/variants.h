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

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

enum class HeadLogits { again, kept, whole };

struct Variants {
  HeadLogits head = HeadLogits::again;
  bool joined_gradients = false;
  bool bf16_reductions = false;
  bool early_launch = true;

  // Whether there is such a variant; sets it.
  bool set(std::string_view word) {
    if (word == "head=again") return head = HeadLogits::again, true;
    if (word == "head=kept") return head = HeadLogits::kept, true;
    if (word == "head=whole") return head = HeadLogits::whole, true;
    if (word == "wgrad=split" || word == "wgrad=joined") return joined_gradients = word == "wgrad=joined", true;
    if (word == "reductions=f32" || word == "reductions=bf16") return bf16_reductions = word == "reductions=bf16", true;
    if (word == "launch=early" || word == "launch=plain") return early_launch = word == "launch=early", true;
    return false;
  }
};

// Throws Error(ErrorKind::config) at the first word that is none of the above.
inline Variants parse_variants(const std::string& text) {
  Variants variants;
  for (const std::string& word : text.empty() ? std::vector<std::string>() : split(text, ',')) {
    if (!variants.set(word))
      throw Error(ErrorKind::config,
                  str("UCAS_TRY: \"", printable(word, 80),
                      "\": expected some of head=again|kept|whole, wgrad=split|joined, reductions=f32|bf16, "
                      "launch=early|plain, with commas; leave it unset for what usually runs"));
  }
  return variants;
}

inline std::optional<Variants>& variants_of_test() {
  static std::optional<Variants> of_test;
  return of_test;
}

// Those of the process, read once; or those that a test puts in their place.
inline const Variants& variants() {
  static const Variants of_process = [] {
    const char* text = std::getenv("UCAS_TRY");
    return parse_variants(text == nullptr ? "" : text);
  }();
  return variants_of_test() ? *variants_of_test() : of_process;
}

class VariantsForTest {
 public:
  explicit VariantsForTest(const Variants& variants) { variants_of_test() = variants; }
  ~VariantsForTest() { variants_of_test().reset(); }
  VariantsForTest(const VariantsForTest&) = delete;
  VariantsForTest& operator=(const VariantsForTest&) = delete;
};

}  // namespace ucas

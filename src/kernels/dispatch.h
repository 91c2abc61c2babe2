// Which kernels run on this CPU, and why. Apart from kernels.h because the per-instruction-set files may not see the
// standard library: an inline function compiled there could be linked into code that runs on any CPU.
#pragma once

#include <string>

#include "kernels/kernels.h"

namespace ucas::kernels {

struct Choice {
  const Table* table;
  std::string reason;
};
// `forced` is the value of UCAS_ISA, null or "" for the fastest supported. Error(ErrorKind::config) if it cannot run
// here.
Choice choose(const char* forced);

// How GEMMs of bf16 run here (model/gemm/gemm.cpp).
struct Bf16Gemm {
  bool pairs;  // by instructions that multiply pairs; otherwise as f32 GEMMs of numbers that are widened on the way
  std::string reason;
  // Rows that are multiplied by a kernel for few of them. Of pairs the sums are those of oneDNN's kernel only where
  // that has no tiles (AMX), whose order of sums is another.
  int64_t small_m = kSmallM;
};
// `forced` is the value of UCAS_BF16: "pairs", "widened", or null or "" for the faster. Error(ErrorKind::config) if the
// CPU cannot multiply pairs, or `table` does not.
Bf16Gemm choose_bf16(const char* forced, const Table& table);
const Bf16Gemm& bf16_gemm();

}  // namespace ucas::kernels

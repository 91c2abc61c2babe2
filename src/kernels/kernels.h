// The table of CPU kernels: one body (kernels_body.inc), compiled once per instruction set. The fastest that this CPU
// supports is chosen when first asked for; UCAS_ISA=scalar|avx2|avx512 forces one (Error("config") if it cannot run).
// "scalar" is the specification and uses the compiler's baseline instructions.
// Pointers only, no allocation, no exceptions. Threads: any.
#pragma once

#include <cstdint>

#include "kernels/lm_head.h"

namespace ucas::kernels {

struct Table {
  const char* name;
  void (*row_stats)(const float* logits, int64_t n, float inverse_temperature, RowStats& stats);
  void (*row_gradient)(const float* logits, int64_t n, int64_t target, const RowGradient& row, float* out);
};

const Table& table();
// nullptr if this CPU cannot run it.
const Table* table_of(const char* name);

namespace scalar {
extern const Table kTable;
}
namespace avx2 {
extern const Table kTable;
}
namespace avx512 {
extern const Table kTable;
}

}  // namespace ucas::kernels

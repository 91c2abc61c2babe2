#include "support/gpu_emulation.h"

#include "kernels/gpu/table.inc"

namespace ucas::gpu {

const Table& host() {
  static const Table table = UCAS_GPU_TABLE("host");
  return table;
}

}  // namespace ucas::gpu

// The device's table; compiled by nvcc, raw pointers and streams only.
#include <cuda_runtime.h>

#include "base/error.h"
#include "base/str.h"
#include "gpu/table.inc"

namespace ucas::gpu {

void check_launch(const char* kernel) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw Error("device", str("kernel ", kernel, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}

const Table* device() {
  static const Table table = UCAS_GPU_TABLE("device");
  return &table;
}

}  // namespace ucas::gpu

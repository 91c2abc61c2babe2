// The device's table; compiled by nvcc, raw pointers and streams only.
#include <cuda_runtime.h>

#include "base/error.h"
#include "base/str.h"
#include "gpu/table.inc"

namespace ucas::gpu {

void check_launch(const char* kernel) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw Error(ErrorKind::device, str("kernel ", kernel, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}

// Any kernel tells: all are compiled for the same architectures. The first look loads the image, so that PTX which the
// driver cannot compile shows here, too.
std::string refusal() {
  cudaFuncAttributes of = {};
  const cudaError_t status = cudaFuncGetAttributes(&of, run_kernel<EmbedRows>);
  cudaGetLastError();
  return status == cudaSuccess ? "" : cudaGetErrorString(status);
}

const Table& device() {
  static const Table table = UCAS_GPU_TABLE("device");
  return table;
}

}  // namespace ucas::gpu

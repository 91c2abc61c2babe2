// The device's table; compiled by nvcc, raw pointers and streams only.
#include <cuda_runtime.h>

#include <atomic>

#include "base/error.h"
#include "base/str.h"
#include "kernels/gpu/table.inc"

namespace ucas::gpu {

// The call's own answer: the runtime's last error may be an earlier one of somebody else.
void check_launch(const char* kernel, int code) {
  const auto status = static_cast<cudaError_t>(code);
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorKind::device, str("kernel ", kernel, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}

namespace {
std::atomic<bool> early = true;
}
void launch_early(bool wanted) { early = wanted; }
bool launches_early() { return early.load(std::memory_order_relaxed); }

// Any kernel shows it: all are compiled for the same architectures. The first look loads the image, so that PTX which the
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

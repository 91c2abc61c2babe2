// A device's kernels against the CPU emulation of the same kernels, one by one, on small random inputs with ragged
// ends: which kernel it is where the check at the start of a training (train/update/self_check.h) finds a difference,
// and how much of a copy's bandwidth each reaches (bench_gpu what=kernels).
#pragma once

#include <string>
#include <vector>

#include "model/backend/gpu/gpu_block.h"
#include "model/limits.h"
#include "model/model.h"

namespace ucas::testing {

struct KernelFinding {
  std::string what;       // a kernel of gpu::Table
  double difference = 0;  // from the host, as a share of the largest value; of what is exact, the share that differs
  double bound = 0;       // of the output that came nearest to its own
  double share = -1;      // of a copy, at a large shape; below 0: not measured
  bool ok() const { return difference <= bound; }  // not of a NaN
};

enum class KernelShapes { few, all };

// A row for each kernel of the table. `own`: also with the heads of this model, at a length beyond 1,024.
std::vector<KernelFinding> check_kernels(const Kernels& reference, const Kernels& tested, KernelShapes shapes,
                                         const ModelConfig* own = nullptr);
// Adds the shares.
void add_kernel_speed(at::Device device, const Limits& limits, std::vector<KernelFinding>& findings);
// The largest difference as a share of the largest value; infinite where a number is none.
double difference_of(const at::Tensor& got, const at::Tensor& want);

}  // namespace ucas::testing

// Whether a device does what the CPU emulation of the same kernels does, and how much of its limits it reaches: kernel
// by kernel on small random inputs with ragged ends, and for a whole model. What `ucas doctor --device cuda` prints,
// and what every training on a device begins with (train/update/gpu_check.h adds the optimizer, which a model knows
// nothing of).
#pragma once

#include <string>
#include <vector>

#include "model/backend/gpu/gpu_block.h"
#include "model/limits.h"
#include "model/model.h"

namespace ucas {

struct GpuFinding {
  std::string what;       // a kernel of gpu::Table, or a part of the whole
  double difference = 0;  // from the host, as a share of the largest value; of what is exact, the share that differs
  double bound = 0;       // of the output that came nearest to its own
  double share = -1;      // of what `limit` allows, at a large shape; below 0: not measured
  const char* limit = "";
  bool ok() const { return difference <= bound; }  // not of a NaN
};

// few: what every training can afford at its start.
enum class GpuShapes { few, all };

// A row for each kernel of the table. `own`: also with the heads of this model, at a length beyond 1,024.
std::vector<GpuFinding> check_kernels(const Kernels& reference, const Kernels& tested, GpuShapes shapes,
                                      const ModelConfig* own = nullptr);
// Logits, gradients and decoding of two models that hold the same weights.
std::vector<GpuFinding> check_model(Model& reference, Model& tested);
// Small models to try that with, one for each kind of block: the same numbers on every device.
// `own`: one more, of one layer with the heads of this model.
std::vector<std::unique_ptr<Model>> models_to_check(at::Device device, GpuShapes shapes,
                                                    const ModelConfig* own = nullptr);

// The worse of both for each row of `more`.
void keep_worse(std::vector<GpuFinding>& findings, const std::vector<GpuFinding>& more);
// The largest difference as a share of the largest value; infinite where a number is none.
double difference_of(const at::Tensor& got, const at::Tensor& want);

// Add shares of the limits to the rows of check_kernels() and check_model().
void add_kernel_speed(at::Device device, const Limits& limits, std::vector<GpuFinding>& findings);
void add_model_speed(Model& large, const Limits& limits, std::vector<GpuFinding>& findings);
// Random weights made where they lie, for what is timed.
std::unique_ptr<Model> random_model(const ModelConfig& config, at::Device device, const ModelOptions& options);
// One whose GEMMs fill a device.
std::unique_ptr<Model> large_model(at::Device device);

}  // namespace ucas

// Whether a device computes what the CPU's own bf16 path does: a small model with the heads of the one to be run,
// forward, backward, decoding and update. Every command that runs a model on a device begins with it, and
// `ucas doctor --device cuda` prints it. Kernel by kernel: tests/support/engine/gpu_kernels.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/model.h"

namespace ucas {

struct GpuFinding {
  std::string what;
  double difference = 0, bound = 0;                // as a share of the largest value
  bool ok() const { return difference <= bound; }  // not of a NaN
};

// Two blocks, the second with a window; family and heads of `own` where it is given. The same numbers on every device.
std::unique_ptr<Model> model_to_check(at::Device device, const ModelConfig* own = nullptr);
// Of two models that hold the same weights; updates both.
std::vector<GpuFinding> check_model(Model& reference, Model& tested);
// Throws Error(ErrorKind::device) where there are no kernels for the device.
std::vector<GpuFinding> check_gpu(at::Device device, const ModelConfig* own = nullptr);

// Before anything runs there: throws Error(ErrorKind::device, exit 70), naming the first part that is not what it
// should be. Does nothing where the model does not run on the device's kernels.
void require_sound_gpu(const Model& model);

}  // namespace ucas

// Whether training on a device gives what the CPU gives (model/backend/gpu/gpu_check.h), the optimizer's update
// included.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/backend/gpu/gpu_check.h"

namespace ucas {

// All rows: kernels, forward, backward, decoding, update. Speed is of large shapes and takes some seconds; what does
// not fit the device's memory is not measured. Throws Error(ErrorKind::device) where there are no kernels for the
// device. `own`: also with the heads of this model.
std::vector<GpuFinding> check_gpu(at::Device device, bool with_speed, GpuShapes shapes = GpuShapes::all,
                                  const ModelConfig* own = nullptr);
// Two updates of the same weights by the same gradients.
GpuFinding check_update(Model& reference, Model& tested);

// Before anything is trained there: throws Error(ErrorKind::device, exit 70), naming the first kernel that is not what
// it should be. Does nothing where the model does not run on the device's kernels.
void require_sound_gpu(const Model& model);

}  // namespace ucas

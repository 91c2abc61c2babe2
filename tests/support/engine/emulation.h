// Models as other back ends run them, on the CPU: what tests know of a device that is not there, and what the program's
// own back ends are compared with. Linking this registers the emulation of the GPU's kernels (model/backend/gpu).
#pragma once

#include <memory>

#include "model/model.h"

namespace ucas {

// The same weights as a GPU's kernels would read them, slowly (support/gpu_emulation.h). bf16.
std::unique_ptr<Model> emulated_view(Model& model);
// The same weights behind LibTorch's operations and autograd.
std::unique_ptr<Model> aten_view(Model& model);

}  // namespace ucas

// A hand-written backward as an autograd node. One .cpp holds LibTorch's custom-function header, which costs 8 s of
// compile time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace ucas {

// Gets the gradients of the outputs (undefined where none flows), gives those of the inputs (undefined where none).
using Backward = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// Ties `outputs`, computed without gradient, to `inputs` through `backward`, which runs at most once and is freed
// afterwards with all that it holds.
std::vector<at::Tensor> differentiable(const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
                                       Backward backward);

}  // namespace ucas

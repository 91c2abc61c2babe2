// Which back end a model runs on, for every family of hf/families.h.
#pragma once

#include <string>

#include "model/model.h"
#include "model/weights.h"

namespace ucas {

// automatic: what is fastest where the weights lie. emulated: CPU emulation of the GPU kernels, slow.
enum class Path { automatic, aten, emulated };

// Whether passes read bf16 copies of matrices and add gradients by hand, as all back ends but ATen's do.
bool computes_by_hand(const ModelConfig& config, at::Device device, const ModelOptions& options);

std::unique_ptr<Model> model_of(const ModelConfig& config, Weights weights, const ModelOptions& options,
                                Path path = Path::automatic);
// The same, once what GEMMs read has been made of the leaves.
std::unique_ptr<Model> make_transformer(const ModelConfig& config, Weights weights, const ModelOptions& options = {},
                                        Path path = Path::automatic);
// What is said where a CUDA device does not run the GPU kernels: why, and what that costs.
std::string slow_path(const ModelConfig& config, const ModelOptions& options, const std::string& device);
// The same weights behind the ATen path: what the tests compare the native path with.
std::unique_ptr<Model> aten_view(Model& model);
// The same weights as a GPU's kernels would read them: what the tests know of a device that is not there. bf16.
std::unique_ptr<Model> emulated_view(Model& model);

}  // namespace ucas

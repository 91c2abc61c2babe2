// Which back end a model runs on, for every family of hf/families.h.
#pragma once

#include <string>

#include "model/model.h"
#include "model/weights.h"

namespace ucas {

// Whether passes read bf16 copies of matrices and add gradients by hand, as all back ends but ATen's do.
bool computes_by_hand(const ModelConfig& config, at::Device device, const ModelOptions& options);

std::unique_ptr<Model> model_of(const ModelConfig& config, Weights weights, const ModelOptions& options);
// The same, once what GEMMs read has been made of the leaves.
std::unique_ptr<Model> make_transformer(const ModelConfig& config, Weights weights, const ModelOptions& options = {});
// What is said where a CUDA device does not run the GPU kernels: why, and what that costs.
std::string slow_path(const ModelConfig& config, const ModelOptions& options, const std::string& device);

}  // namespace ucas

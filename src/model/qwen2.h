// The one implementation of Model. Two forward paths: native (CPU, f32: own kernels and row-stable GEMMs, see
// native.h) and generic (ATen operations, any device).
#pragma once

#include "model/model.h"
#include "model/weights.h"

namespace ucas {

enum class Path { automatic, generic };  // automatic: native where it applies

std::unique_ptr<Model> make_qwen2(const Qwen2Config& config, Weights weights, Path path = Path::automatic);
// The same weights behind the ATen path: what the tests compare the native path with.
std::unique_ptr<Model> generic_view(Model& model);

}  // namespace ucas

// The one implementation of Model, for every family of hf/families.h.
#pragma once

#include "model/model.h"
#include "model/weights.h"

namespace ucas {

enum class Path { automatic, aten };  // automatic: what is fastest where the weights lie

std::unique_ptr<Model> make_transformer(const ModelConfig& config, Weights weights, const ModelOptions& options = {},
                                        Path path = Path::automatic);
// The same weights behind the ATen path: what the tests compare the native path with.
std::unique_ptr<Model> aten_view(Model& model);

}  // namespace ucas

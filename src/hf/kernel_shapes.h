// Which models the GPU kernels of this program run (gpu/kernels.h); others run by LibTorch's operations there.
#pragma once

#include <string>

#include "core/model_options.h"
#include "hf/model_config.h"

namespace ucas {

std::string unsuited_for_kernels(const ModelConfig& config, const ModelOptions& options);  // why not; empty: it suits
bool suits_kernels(const ModelConfig& config, const ModelOptions& options);

}  // namespace ucas

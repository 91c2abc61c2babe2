// LM-head statistics in ATen operations, for devices without own kernels; also what the tests compare head.cpp with.
#pragma once

#include "model/model.h"

namespace ucas {

HeadStats head_stats_generic(const at::Tensor& hidden, const at::Tensor& lm_head, const std::vector<int32_t>& target,
                             double temperature);

}  // namespace ucas

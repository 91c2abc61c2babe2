// At start-up: the fused LM-head statistics against a small materialised computation on the run's own weights, so that
// a broken build, kernel or library is found before it trains, not after.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace ucas {

struct HeadCheck {
  double value_difference = 0;     // largest |fused - materialised| of log-prob, entropy, confidence and logit
  double gradient_difference = 0;  // of d hidden, relative to its largest entry
};

// Uses the first tokens of a prompt. Throws Error(ErrorKind::numeric, exit 70) beyond 1e-3, or 1e-3 / temperature below
// 1, on either.
HeadCheck check_head(Model& model, const std::vector<int32_t>& prompt, double temperature);

}  // namespace ucas

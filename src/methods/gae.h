// Generalised advantage estimation (Schulman et al. 2016, Eq. 11-16; algorithms: Sec. 8): how much better the rest of a
// response went than the critic expected. Arrays are packed [N]; arithmetic is float64.
#pragma once

#include <span>

#include "core/batch.h"

namespace ucas {

// Backwards inside each response, with V and A beyond its last token 0, truncated or not:
//   delta_t = r_t + gamma V_{t+1} - V_t      A_t = delta_t + gamma lambda A_{t+1}
// `reward`: methods/returns.h token_rewards(). With gamma = lambda = 1 this is A_t = (rewards from t on) - V_t.
void gae(const Batch& batch, std::span<const double> reward, double gamma, double lambda, std::span<double> advantage);

}  // namespace ucas

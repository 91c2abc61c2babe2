// Token rewards and what is made of them: returns, advantages by a critic's values, and whitening over the batch.
// Arrays are packed [N]; arithmetic is float64.
#pragma once

#include <span>
#include <vector>

#include "core/batch.h"

namespace ucas {

// r_it: the response's reward at its last token, less Batch::reward_kl at every token. Empty responses have none.
std::vector<double> token_rewards(const Batch& batch);

// R_t = r_t + gamma R_{t+1} inside each response, in place.
void discount_backwards(const Batch& batch, double gamma, std::span<double> rewards);

// Generalised advantage estimation (Schulman et al. 2016, Eq. 11-16): how much better the rest of a response went than
// the critic expected, [N]. Backwards inside each response, with V and A beyond its last token 0, truncated or not:
//   delta_t = r_t + gamma V_{t+1} - V_t      A_t = delta_t + gamma lambda A_{t+1}
// With gamma = lambda = 1 this is A_t = (rewards from t on) - V_t. `reward`: token_rewards().
std::vector<double> gae(const Batch& batch, std::span<const double> reward, double gamma, double lambda);

// (x - mean) / sqrt(var + 1e-8) over the trained tokens of the batch, in place, var with n - 1 (ddof 1) or n (ddof 0,
// floored at 1e-8 instead); tokens of masked responses become 0. Sums run over sorted values: the order of rows changes
// nothing. Equal values, or fewer than two, become exactly 0.
void whiten(const Batch& batch, std::span<double> x, int64_t ddof = 1);

// To the precision of the batch's arrays.
std::vector<float> to_float(std::span<const double> values);

}  // namespace ucas

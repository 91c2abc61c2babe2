// Token rewards and what is made of them: returns, and whitening over the batch (algorithms: Sec. 0, 7, 8, 13, 15).
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

// (x - mean) / sqrt(var + 1e-8) over all tokens, in place, var with n - 1 (ddof 1) or n (ddof 0, floored at 1e-8
// instead). Sums run over sorted values: the order of rows changes nothing. Equal values, or fewer than two, become
// exactly 0.
void whiten(std::span<double> x, int64_t ddof = 1);

}  // namespace ucas

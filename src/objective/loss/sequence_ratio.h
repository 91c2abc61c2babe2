// The clipped ratio of whole responses (GSPO, Eq. 5 and 7), per token:
//   s_i = exp(mean_t (lp_t - old_t))    loss_t = max(-A s_i, -A clip(s_i, 1 - eps_low, 1 + eps_high))
//   d loss_t / d lp_t = -A s_i where the first term counts, else 0
// The derivative is that of the sum of a response's L_i equal losses: d s_i / d lp_t = s_i / L_i of each of them. How
// much a response counts is then a matter of the aggregation: seq_mean_token_mean is GSPO, seq_mean_token_sum LUSPO.
// Writes loss, d_logprob and clipped; rejected tokens are not part of the mean.
#pragma once

#include "objective/loss/loss.h"

namespace ucas {

void sequence_ratio_loss(const LossInput& in, LossOutput& out);

}  // namespace ucas

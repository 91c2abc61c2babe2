// Eq. 1 and 2, the inner term, per token: PPO's clipped ratio with separate bounds below and above (DAPO's clip-higher)
// and verl's dual clip, which bounds the loss of a wrong response whose ratio explodes. With ratio = exp(lp - old):
//   l1 = -A ratio    l2 = -A clip(ratio, 1 - eps_low, 1 + eps_high)    m = max(l1, l2)    l3 = -A c
//   loss = A < 0 ? min(l3, m) : m
//   d loss / d lp = -A ratio where l1 is the term that counts, else 0
// A token of advantage 0 has loss and derivative exactly 0. On the first, on-policy update every ratio is exactly 1.
// Writes loss, d_logprob and clipped.
#pragma once

#include "objective/loss/loss.h"

namespace ucas {

// exp(lp - old) and its derivative with respect to lp. The difference is held in +-20, so that exp stays finite;
// beyond, the derivative is 0. A NaN stays a NaN: the trainer must see it and skip the step.
struct Ratio {
  double value = 1, derivative = 1;
};
Ratio ratio_of(double logprob, double old_logprob);

void clipped_ratio_loss(const LossInput& in, LossOutput& out);

// The clipped ratio of whole responses (GSPO, Eq. 5 and 7), per token:
//   s_i = exp(mean_t (lp_t - old_t))    loss_t = max(-A s_i, -A clip(s_i, 1 - eps_low, 1 + eps_high))
//   d loss_t / d lp_t = -A s_i where the first term counts, else 0
// The derivative is that of the sum of a response's L_i equal losses: d s_i / d lp_t = s_i / L_i of each of them. How
// much a response counts is then a matter of the aggregation: seq_mean_token_mean is GSPO, seq_mean_token_sum LUSPO.
// Writes loss, d_logprob and clipped.
void sequence_ratio_loss(const LossInput& in, LossOutput& out);

}  // namespace ucas

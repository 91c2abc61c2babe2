// From per-token losses to the loss of a mini-batch (Eq. 1, 4, 11), exactly, however the mini-batch is cut into
// micro-batches: each token gets a weight w_it with  loss = sum_it w_it loss_it,  and w_it depends on counts over the
// whole mini-batch only. With m_it = 1 where the token counts (all do, but for losses that select), M_i = sum_t m_it,
// n = responses with M_i > 0, rows = all responses and const = the response limit:
//
//   token_mean               w_it = m_it / sum_i M_i
//   seq_mean_token_mean      w_it = m_it / (n M_i)
//   seq_mean_token_sum       w_it = m_it / n
//   seq_mean_token_sum_norm  w_it = m_it / const            older verl's Dr.GRPO: no division by n
//   row_mean_token_sum_norm  w_it = m_it / (rows const)     Oat's Dr.GRPO: empty responses count
//   group_token_mean         w_it = m_it / (groups sum_{j in its group} M_j)
//                                                           Eq. 4, 11: a token mean per prompt, then the mean over
//                                                           prompts with a counted token
//
// Use, for one mini-batch:
//   Denominators total = denominators(objective, whole_mini, response_limit);   // summed over ranks by +=
//   LossMetrics metrics;
//   for each micro-batch: TokenShares shares = token_shares(objective, micro, total);
//                         for each part of it, in order: objective_gradients(loss, objective, part, shares, out,
//                         metrics); feed out.d_logprob, d_entropy, d_confidence to the LM head's backward; gradients
//                         add up.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "objective/loss/loss.h"
#include "objective/loss/rollout_correction.h"

namespace ucas {

// Counts over the whole mini-batch, over all ranks.
struct Denominators {
  double token_count = 0;                  // counted tokens
  double sequences = 0;                    // responses with at least one counted token
  double rows = 0;                         // all responses, empty ones too
  double norm_length = 0;                  // the response limit
  std::map<int64_t, double> group_tokens;  // counted tokens of each group (Sequence::group) that has one
  Denominators& operator+=(const Denominators& other);
};

// `whole_mini` needs its sequences, the marks where the loss selects, old_logprob and rollout_logprob.
Denominators denominators(const ObjectiveConfig& objective, const LossInput& whole_mini, int64_t response_limit);

// Each is the aggregate over what was added so far, so after the last micro-batch that of the mini-batch; means over
// micro-batches would be inexact.
struct LossMetrics {
  double pg_loss = 0;         // policy term alone: without entropy bonus and KL loss
  double clipfrac = 0;        // share of counted tokens clipped at 1 - clip_low or 1 + clip_high, or as the loss says
  double clipfrac_lower = 0;  // share of counted tokens stopped by the dual clip
  double ppo_kl = 0;          // mean of old_logprob - logprob over counted tokens, or as the loss says
  double entropy = 0;         // aggregated like the loss
  double kl_loss = 0;         // aggregated like the loss, before kl_coeff
};

// What is known of a micro-batch's tokens before their log-probs are.
struct TokenShares {
  std::vector<float> counted;    // [n] m_it
  std::vector<float> weight;     // [n] w_it
  double token_count = 0;        // of the mini-batch
  RolloutCorrection correction;  // of the whole sequences
};
// `micro` needs what denominators() does.
TokenShares token_shares(const ObjectiveConfig& objective, const LossInput& micro, const Denominators& total);

// The loss of tokens [first, first + n) of what the shares are of, and its gradients, scaled: afterwards
//   out.loss = w_it (loss_it - entropy_coeff H_it + kl_coeff KL_it), out.d_* its derivatives,
// and `metrics` has grown by their share. Everything in `out` is overwritten. The part ends where a sequence does,
// unless the loss takes parts of responses.
void objective_gradients(const PolicyLoss& loss, const ObjectiveConfig& objective, const LossInput& part,
                         const TokenShares& shares, int64_t first, LossOutput& out, LossMetrics& metrics);
// Of all of them at once.
void objective_gradients(const PolicyLoss& loss, const ObjectiveConfig& objective, const LossInput& micro,
                         const Denominators& total, LossOutput& out, LossMetrics& metrics);

// What the loss marks among these tokens: select() with everything it may read filled in.
void select_tokens(const PolicyLoss& loss, const ObjectiveConfig& objective, LossInput in, std::span<uint8_t> mark);

// w_it of the table above for one sequence of a group, from its m_it (in place).
void aggregation_weights(Aggregation aggregation, const Denominators& total, int64_t group, std::span<float> weight);

}  // namespace ucas

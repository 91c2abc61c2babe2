// What a response is rewarded for, with (or instead of) its verdict, and how the parts become one score:
//   score_i = sum_k w_k r_ik
// Each r_ik is logged apart, and methods may normalise it apart (GDPO). Arithmetic without a run, to be checked on
// numbers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/batch.h"

namespace ucas {

// answer   reward.correct or reward.wrong, by the verdict; of a program on tests a value between, with reward.partial
// command  the score that reward.command gives
// format   1 where the whole response matches reward.format, else 0
// length   the shorter the better among the responses to one prompt (length_rewards)
enum class RewardPart : uint8_t { answer, command, format, length };
constexpr std::array<const char*, 4> names(RewardPart) { return {"answer", "command", "format", "length"}; }

struct WeightedPart {
  RewardPart part;
  double weight;
};

// "PART=WEIGHT" each, in that order. None: one part, the command if there is one, else the answer.
// Error(ErrorKind::config) if an entry is not of that syntax, is a duplicate, or weighs nothing.
std::vector<WeightedPart> parse_reward_weights(const std::vector<std::string>& weights, bool command);
std::vector<RewardTerm> reward_terms(std::span<const WeightedPart> parts);

// The length reward of Kimi k1.5 (arXiv:2501.12599, Sec. 2.3.3), in [-0.5, 0.5]:
//   lambda_i = 0.5 - (L_i - min L) / (max L - min L);  lambda_i where right, min(0, lambda_i) where not
// 0 for all where all lengths are equal. `length` and `right`: [G], of one prompt.
std::vector<double> length_rewards(std::span<const int64_t> length, std::span<const uint8_t> right);

// The implicit process reward model's loss, plain arithmetic: a language model phi is a classifier of whole responses,
// P(right) = sigma(beta sum_t q_it) with q_it = lp_phi - lp_ref, trained by cross-entropy on the verdicts. Its
// gradient reaches every token of a response equally. train/auxiliary/implicit_prm feeds it into the network.

// Of one response: BCE(sigma(beta s), acc) with s = sum_t q_it.
struct PrmRow {
  double loss = 0;
  double probability = 0;  // sigma(beta s)
  double d_token = 0;      // d loss / d lp_phi of each of its tokens: beta (sigma(beta s) - acc)
  bool agrees = false;     // (probability > 0.5) == acc
};
PrmRow implicit_prm_row(double logratio_sum, bool right, double beta);

// acc_i: the verdict alone, before any shaping of the reward.
bool is_right(const Response& response);

// Means over the responses that have tokens. Empty ones say nothing about phi.
struct PrmLoss {
  double loss = 0, accuracy = 0;
  std::vector<double> d_token;  // [B] d loss / d lp_phi of each token of a response
};

}  // namespace ucas

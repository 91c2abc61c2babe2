// What a response is paid for beside (or instead of) its verdict, and how the parts become one score:
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

// answer   reward.correct or reward.wrong, by the verdict; of a program on tests what lies between, with reward.partial
// command  the score that reward.command gives
// format   1 where the whole response matches reward.format, else 0
// length   the shorter the better among the responses to one prompt (length_rewards)
enum class RewardPart : uint8_t { answer, command, format, length };
constexpr std::array<const char*, 4> names(RewardPart) { return {"answer", "command", "format", "length"}; }

struct WeightedPart {
  RewardPart part;
  double weight;
};

// "PART=WEIGHT" each, in that order. None: what pays alone, the command where there is one, else the answer.
// Error(ErrorKind::config) where an entry is not of that form, stands twice, or weighs nothing.
std::vector<WeightedPart> parse_reward_weights(const std::vector<std::string>& weights, bool command);
std::vector<RewardTerm> reward_terms(std::span<const WeightedPart> parts);

// The length reward of Kimi k1.5 (arXiv:2501.12599, Sec. 2.3.3), in [-0.5, 0.5]:
//   lambda_i = 0.5 - (L_i - min L) / (max L - min L);  lambda_i where right, min(0, lambda_i) where not
// 0 for all where all lengths are equal. `length` and `right`: [G], of one prompt.
std::vector<double> length_rewards(std::span<const int64_t> length, std::span<const uint8_t> right);

}  // namespace ucas

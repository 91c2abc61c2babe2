// Eq. 3: a response's advantage is its reward, z-scored within the responses to the same prompt. Also the z-score and
// min-max themselves, which other methods apply to other signals. Arithmetic is float64; sums run over sorted values,
// so the order of the responses cannot change a single bit. One NaN among the values makes all of them NaN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/text/fields.h"
#include "core/batch.h"

namespace ucas {

// What a group of one response is worth, where no spread exists: its reward (verl: mean 0, std 1) or nothing (TRL).
enum class GroupOfOne { reward, zero };

struct GroupAdvantageConfig {
  double eps = 1e-6;  // added to the standard deviation; verl 1e-6, Oat 1e-8, TRL 1e-4
  int64_t ddof = 1;   // 1: divide by G - 1 (verl, TRL, Oat); 0: by G
  GroupOfOne group_of_one = GroupOfOne::reward;
  void fields(Fields& f);
};

// A_i of every response of one group: [G]. Exactly 0 for all where all rewards are equal.
std::vector<double> group_advantage(std::span<const Response> group, const GroupAdvantageConfig& config);

// R_i - mean: Eq. 3 without its deviation (Dr.GRPO). Exactly 0 for all where all rewards are equal. Of a group of one:
// its reward, or 0.
std::vector<double> centered_rewards(std::span<const Response> group, GroupOfOne group_of_one);

// x_i - mean over the values with counted[i] (all, where `counted` is empty); 0 for the others, and for all where the
// counted values are equal or fewer than two.
std::vector<double> centered(std::span<const double> x, const std::vector<bool>& counted);

// (x_i - mean) / (std + eps) over the values with counted[i] (all, where `counted` is empty). 0 for the others, and for
// all where the counted values are equal or fewer than two.
std::vector<double> zscore(std::span<const double> x, const std::vector<bool>& counted, double eps, int64_t ddof);

// (x_t - min) / (max - min + eps). Where all are equal: 0 for all; with `half` 0.5 for all, there and where they are as
// close as torch.isclose calls close.
enum class EqualValues { zero, half };
std::vector<double> min_max(std::span<const float> x, double eps, EqualValues equal = EqualValues::zero);

double mean(std::span<const float> x);  // 0 if empty

// Of each answer class the share of the values that are the same; -1, not readable, agrees with itself alone.
std::vector<double> agreement(std::span<const int32_t> answer_class);

// Which responses have at least one token.
std::vector<bool> non_empty(std::span<const Response> responses);

// The sum, over sorted values.
double sorted_sum(std::vector<double> values);

// Mean and deviation of some values.
struct Moments {
  bool spread = false;  // at least two of them, and not all equal; all else is 0 otherwise
  double n = 0, mean = 0;
  double squares = 0;  // sum of (x - mean)^2
};
Moments moments(std::vector<double> values);

}  // namespace ucas

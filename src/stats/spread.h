// How far numbers scatter and what may be said of a difference: mean, sample standard deviation, t intervals, and the
// paired difference of two yes/no series. Shared by everything that prints "a +- b" or the words "better than".
// Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace ucas {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Figure {
  double value = kUnknown;
  double low = kUnknown;
  double high = kUnknown;
  bool known() const { return value == value; }
  bool bounded() const { return low == low && high == high; }
};

double mean_of(std::span<const double> values);       // unknown if empty
double deviation_of(std::span<const double> values);  // sample standard deviation (n - 1); unknown for n < 2

// Quantile 0.975 of Student's t with `freedom` degrees of freedom: 12.706 for 1, 1.960 for many.
double student_975(int64_t freedom);

// Mean with its 95 % t interval; without bounds for fewer than two values.
Figure mean_estimate(std::span<const double> values);

// Two series of right/wrong on the same problems: `gained` are right only in the second, `lost` only in the first.
// The difference of shares (second - first) with the 95 % interval of Bonett and Price (2012), which stays honest when
// few pairs or none disagree.
Figure paired_share_difference(int64_t gained, int64_t lost, int64_t pairs);

}  // namespace ucas

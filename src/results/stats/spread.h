// How far numbers scatter and what may be said of a difference: mean, sample standard deviation, t intervals, and the
// paired difference of two yes/no series. Shared by everything that prints "a +- b" or the words "better than".
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/text/json.h"

namespace ucas {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Figure {
  double value = kUnknown;
  double low = kUnknown;
  double high = kUnknown;
  bool known() const { return value == value; }
  bool bounded() const { return low == low && high == high; }
};

OrderedJson json_of(const Figure& f);  // {"value": .., "low": .., "high": ..}; null where unknown

// Bounds of a share, between 0 and 1; unknown ones stay so.
Figure within_share(Figure f);

double mean_of(std::span<const double> values);       // unknown if empty
double deviation_of(std::span<const double> values);  // sample standard deviation (n - 1); unknown for n < 2

// All the same up to rounding: how they scatter cannot be estimated from them, and a t interval would have no width.
bool constant(std::span<const double> values);

// The t with P(|T| <= t) = level for `freedom` degrees of freedom: 12.706 for 1 at 0.95, 1.960 for many.
double student_quantile(double freedom, double level = 0.95);

// Mean with its t interval; without bounds for fewer than two values and for constant ones.
Figure mean_estimate(std::span<const double> values, double level = 0.95);

// Two series of right/wrong on the same problems: `gained` are right only in the second, `lost` only in the first.
// The difference of shares (second - first) with the interval of Bonett and Price (2012), which stays honest when few
// pairs or none disagree.
Figure paired_share_difference(int64_t gained, int64_t lost, int64_t pairs, double level = 0.95);

}  // namespace ucas

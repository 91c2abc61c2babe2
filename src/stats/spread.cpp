#include "stats/spread.h"

#include <algorithm>
#include <cmath>

namespace ucas {

double mean_of(std::span<const double> values) {
  if (values.empty()) return kUnknown;
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values) {
  if (values.size() < 2) return kUnknown;
  double mean = mean_of(values), sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double student_975(int64_t freedom) {
  constexpr double table[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
                              2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
                              2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
  if (freedom < 1) return kUnknown;
  if (freedom <= 30) return table[freedom - 1];
  // Cornish-Fisher expansion around the normal quantile; from 31 degrees on it is exact to 1e-4.
  constexpr double z = 1.959964;
  double n = static_cast<double>(freedom);
  double z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n);
}

Figure mean_estimate(std::span<const double> values) {
  Figure result;
  result.value = mean_of(values);
  if (values.size() < 2) return result;
  double half = student_975(static_cast<int64_t>(values.size()) - 1) * deviation_of(values) /
                std::sqrt(static_cast<double>(values.size()));
  result.low = result.value - half;
  result.high = result.value + half;
  return result;
}

Figure paired_share_difference(int64_t gained, int64_t lost, int64_t pairs) {
  if (pairs < 1) return {};
  double n = static_cast<double>(pairs);
  double up = static_cast<double>(gained + 1) / (n + 2), down = static_cast<double>(lost + 1) / (n + 2);
  double half = 1.959964 * std::sqrt((up + down - (up - down) * (up - down)) / (n + 2));
  Figure result;
  result.value = static_cast<double>(gained - lost) / n;
  result.low = std::max(-1.0, up - down - half);
  result.high = std::min(1.0, up - down + half);
  return result;
}

}  // namespace ucas

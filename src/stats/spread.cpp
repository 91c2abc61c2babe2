#include "stats/spread.h"

#include <algorithm>
#include <cmath>

#include "stats/intervals.h"

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
  if (freedom < 1) return kUnknown;
  double v = static_cast<double>(freedom);
  return std::sqrt(v * (1 / beta_quantile(v / 2, 0.5, 0.05) - 1));  // P(|T| > t) = I_x(v/2, 1/2), x = v / (v + t^2)
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

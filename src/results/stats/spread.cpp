#include "results/stats/spread.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "results/stats/intervals.h"

namespace ucas {

OrderedJson json_of(const Figure& f) { return {{"value", f.value}, {"low", f.low}, {"high", f.high}}; }

Figure within_share(Figure f) {
  if (f.low < 0) f.low = 0;
  if (f.high > 1) f.high = 1;
  return f;
}

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

bool constant(std::span<const double> values) {
  if (values.empty()) return true;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low <= 1e-9 * std::max(std::fabs(*low), std::fabs(*high));
}

double student_quantile(double freedom, double level) {
  if (!(freedom > 0)) return kUnknown;
  // P(|T| > t) = I_x(v/2, 1/2), x = v / (v + t^2)
  return std::sqrt(freedom * (1 / beta_quantile(freedom / 2, 0.5, 1 - level) - 1));
}

Figure mean_estimate(std::span<const double> values, double level) {
  Figure result;
  result.value = mean_of(values);
  if (values.size() < 2 || constant(values)) return result;
  const auto n = static_cast<double>(values.size());
  const double half = student_quantile(n - 1, level) * deviation_of(values) / std::sqrt(n);
  result.low = result.value - half;
  result.high = result.value + half;
  return result;
}

Figure paired_share_difference(int64_t gained, int64_t lost, int64_t pairs, double level) {
  if (pairs < 1) return {};
  double n = static_cast<double>(pairs);
  double up = static_cast<double>(gained + 1) / (n + 2), down = static_cast<double>(lost + 1) / (n + 2);
  double half = -normal_quantile((1 - level) / 2) * std::sqrt((up + down - (up - down) * (up - down)) / (n + 2));
  Figure result;
  result.value = static_cast<double>(gained - lost) / n;
  result.low = std::max(-1.0, up - down - half);
  result.high = std::min(1.0, up - down + half);
  return result;
}

}  // namespace ucas

#include "results/stats/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "results/stats/spread.h"

namespace ucas {

namespace {

// Linear between order statistics, as numpy does by default.
double quantile(std::span<const double> sorted, double p) {
  double at = p * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(at);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Continued fraction of the incomplete beta function by Lentz's method; converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = std::numeric_limits<double>::min() * 1e10;
  auto held = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / held(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= 10000; ++m) {
    double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (double term : {even, odd}) {
      d = 1 / held(1 + term * d);
      c = held(1 + term / c);
      change = c * d;
      fraction *= change;
    }
    if (std::fabs(change - 1) < 1e-15) break;
  }
  return fraction;
}

// The x in [low, high] where the increasing function f passes 0.
template <class Function>
double bisect(double low, double high, Function f) {
  for (int i = 0; i < 200 && low < high; ++i) {
    double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (f(middle) < 0 ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

}  // namespace

Summary summarize(std::span<const double> values) {
  Summary s;
  if (values.empty()) return s;
  s.count = static_cast<int64_t>(values.size());
  s.mean = mean_of(values);
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  s.min = *low;
  s.max = *high;
  if (s.count > 1) s.std = deviation_of(values);
  return s;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  double log_front = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  if (x < (a + 1) / (a + b + 2)) return std::exp(log_front) * beta_fraction(a, b, x) / a;
  return 1 - std::exp(log_front) * beta_fraction(b, a, 1 - x) / b;
}

double beta_quantile(double a, double b, double p) {
  return bisect(0.0, 1.0, [&](double x) { return incomplete_beta(a, b, x) - p; });
}

double normal_quantile(double p) {
  UCAS_CHECK(p > 0 && p < 1, "a probability strictly between 0 and 1");
  if (p > 0.5) return -normal_quantile(1 - p);
  return bisect(-40.0, 0.0, [&](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2 - p; });
}

namespace {

// The chance that a Brownian motion stays within +-bound at every time: its density at one time from that at the one
// before, on a grid, by Simpson's rule.
double stays_within(double bound, std::span<const double> times) {
  constexpr size_t kIntervals = 256;
  const double step = 2 * bound / kIntervals;
  std::vector<double> weight(kIntervals + 1), density = {1};
  for (size_t i = 0; i <= kIntervals; ++i) weight[i] = step / 3 * (i % kIntervals == 0 ? 1 : i % 2 == 1 ? 4 : 2);
  double before = 0;
  for (double time : times) {
    const double variance = time - before;
    std::vector<double> next(kIntervals + 1);
    for (size_t i = 0; i <= kIntervals; ++i) {
      for (size_t j = 0; j < density.size(); ++j) {
        const double move = density.size() == 1 ? -bound + step * static_cast<double>(i)
                                                : step * (static_cast<double>(i) - static_cast<double>(j));
        next[i] += density[j] * std::exp(-move * move / (2 * variance)) / std::sqrt(2 * M_PI * variance);
      }
    }
    for (size_t i = 0; i <= kIntervals; ++i) next[i] *= weight[i];
    density = std::move(next);
    before = time;
  }
  return std::accumulate(density.begin(), density.end(), 0.0);
}

}  // namespace

std::vector<double> obrien_fleming(std::span<const int64_t> looks, double alpha) {
  std::vector<double> times, levels;
  for (int64_t look : looks) times.push_back(static_cast<double>(look) / static_cast<double>(looks.back()));
  const double bound = bisect(0.5, 8.0, [&](double b) { return stays_within(b, times) - (1 - alpha); });
  for (double time : times) levels.push_back(std::erfc(bound / std::sqrt(2 * time)));
  return levels;
}

Interval clopper_pearson(int64_t successes, int64_t trials, double level) {
  UCAS_CHECK(successes >= 0 && successes <= trials && level > 0 && level < 1, "0 <= successes <= trials");
  double k = static_cast<double>(successes), n = static_cast<double>(trials), tail = (1 - level) / 2;
  return {successes == 0 ? 0 : beta_quantile(k, n - k + 1, tail),
          successes == trials ? 1 : beta_quantile(k + 1, n - k, 1 - tail)};
}

// Few values: weights that sum to 1, of a Dirichlet distribution with 1 for each value and 1/2 for each end of the
// range.
double redraw_mean(std::span<const double> values, const Interval& range, Rng& rng) {
  const auto half = [&] {
    const double z = rng.normal();
    return z * z / 2;
  };
  const double at_high = half(), at_low = half();
  double sum = range.high * at_high + range.low * at_low, weights = at_high + at_low;
  for (double value : values) {
    const double weight = -std::log1p(-rng.uniform());
    sum += weight * value;
    weights += weight;
  }
  return sum / weights;
}

Interval percentile_interval(std::span<const double> resampled, double level) {
  UCAS_CHECK(!resampled.empty() && level > 0 && level < 1, "an interval needs values and a level inside (0, 1)");
  std::vector<double> sorted(resampled.begin(), resampled.end());
  std::sort(sorted.begin(), sorted.end());
  return {quantile(sorted, (1 - level) / 2), quantile(sorted, (1 + level) / 2)};
}

Figure macro_mean(std::span<const std::vector<double>> sets, uint64_t seed, double level, int64_t draws,
                  uint64_t stream) {
  UCAS_CHECK(!sets.empty(), "expected at least one problem set");
  const auto count = static_cast<double>(sets.size());
  Figure out{0, 0, 0};
  bool constant = true;
  for (const auto& set : sets) {
    UCAS_CHECK(!set.empty(), "a problem set must not be empty");
    const Summary summary = summarize(set);
    const bool extreme = summary.min == summary.max && (summary.min == 0 || summary.max == 1);
    constant = constant && extreme;
    const Interval own = clopper_pearson(extreme && summary.max == 1 ? summary.count : 0, summary.count, level);
    out.value += summary.mean / count;
    out.low += own.low / count;
    out.high += own.high / count;
  }
  if (draws == 0) return {out.value, kUnknown, kUnknown};
  if (constant) return out;
  Rng rng(seed, stream);
  std::vector<double> means;
  for (int64_t resample = 0; resample < draws; ++resample) {
    double total = 0;
    for (const auto& set : sets) total += redraw_mean(set, {0, 1}, rng);
    means.push_back(total / count);
  }
  const Interval interval = percentile_interval(means, level);
  return {out.value, interval.low, interval.high};
}

Figure share_mean(const std::vector<double>& values, uint64_t seed, double level, int64_t draws) {
  return macro_mean({&values, 1}, seed, level, draws, 0x626f6f74);
}

}  // namespace ucas

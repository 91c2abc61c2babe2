#include "stats/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "stats/spread.h"

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

double mcnemar(int64_t gained, int64_t lost) {
  int64_t n = gained + lost, few = std::min(gained, lost);
  if (n == 0) return 1;
  // P(X <= few) of a binomial(n, 1/2) is I_{1/2}(n - few, few + 1); by symmetry the other tail is the same.
  double tail = incomplete_beta(static_cast<double>(n - few), static_cast<double>(few + 1), 0.5);
  return std::min(1.0, 2 * tail);
}

double normal_quantile(double p) {
  UCAS_CHECK(p > 0 && p < 1, "a probability strictly between 0 and 1");
  if (p > 0.5) return -normal_quantile(1 - p);
  return bisect(-40.0, 0.0, [&](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2 - p; });
}

Interval clopper_pearson(int64_t successes, int64_t trials, double level) {
  UCAS_CHECK(successes >= 0 && successes <= trials && level > 0 && level < 1, "0 <= successes <= trials");
  double k = static_cast<double>(successes), n = static_cast<double>(trials), tail = (1 - level) / 2;
  return {successes == 0 ? 0 : beta_quantile(k, n - k + 1, tail),
          successes == trials ? 1 : beta_quantile(k + 1, n - k, 1 - tail)};
}

Interval wilson(int64_t successes, int64_t trials, double level) {
  UCAS_CHECK(successes >= 0 && successes <= trials && level > 0 && level < 1, "0 <= successes <= trials");
  if (trials == 0) return {0, 1};
  double n = static_cast<double>(trials), share = static_cast<double>(successes) / n;
  double z = -normal_quantile((1 - level) / 2), z2 = z * z;
  double centre = (share + z2 / (2 * n)) / (1 + z2 / n);
  double half = z / (1 + z2 / n) * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return {successes == 0 ? 0 : centre - half, successes == trials ? 1 : centre + half};
}

Interval bootstrap_mean(std::span<const double> values, uint64_t seed, double level, int64_t draws) {
  UCAS_CHECK(level > 0 && level < 1 && draws > 0, "a level inside (0, 1) and at least one draw");
  if (values.empty()) return {};
  Rng rng(seed, 0x626f6f74);  // a stream of its own
  auto n = static_cast<int64_t>(values.size());
  std::vector<double> means;
  means.reserve(static_cast<size_t>(draws));
  for (int64_t draw = 0; draw < draws; ++draw) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += values[static_cast<size_t>(rng.below(n))];
    means.push_back(sum / static_cast<double>(n));
  }
  return percentile_interval(means, level);
}

Interval percentile_interval(std::span<const double> drawn, double level) {
  UCAS_CHECK(!drawn.empty() && level > 0 && level < 1, "values, and a level inside (0, 1)");
  std::vector<double> sorted(drawn.begin(), drawn.end());
  std::sort(sorted.begin(), sorted.end());
  return {quantile(sorted, (1 - level) / 2), quantile(sorted, (1 + level) / 2)};
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, uint64_t seed, double level,
                                   int64_t draws) {
  UCAS_CHECK(a.size() == b.size(), "the two models were not measured on the same problems");
  std::vector<double> difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(b[i] - a[i]);
  PairedDifference result;
  if (difference.empty()) return result;
  result.mean = mean_of(difference);
  result.interval = bootstrap_mean(difference, seed, level, draws);
  Rng rng(seed, 0x666c6970);
  double observed = std::fabs(result.mean) * (1 - 1e-12);  // equal up to rounding counts as reached
  int64_t reached = 0;
  for (int64_t draw = 0; draw < draws; ++draw) {
    double sum = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < difference.size(); ++i) {
      if (i % 32 == 0) bits = rng.next();
      sum += (bits >> (i % 32)) & 1 ? difference[i] : -difference[i];
    }
    if (std::fabs(sum / static_cast<double>(difference.size())) >= observed) ++reached;
  }
  result.p = static_cast<double>(reached + 1) / static_cast<double>(draws + 1);
  return result;
}

}  // namespace ucas

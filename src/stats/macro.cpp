#include "stats/macro.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/rng.h"

namespace ucas {

namespace {

// Linear between order statistics, as bootstrap_mean.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(std::floor(at));
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - std::floor(at)) * (sorted[high] - sorted[low]);
}

double redrawn(std::span<const std::vector<double>> sets, Rng& rng) {
  double total = 0;
  for (const auto& set : sets) {
    const auto n = static_cast<int64_t>(set.size());
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += set[static_cast<size_t>(rng.below(n))];
    total += sum / static_cast<double>(n);
  }
  return total / static_cast<double>(sets.size());
}

}  // namespace

MacroMean macro_mean(std::span<const std::vector<double>> sets, uint64_t seed, double level, int64_t draws) {
  UCAS_CHECK(!sets.empty(), "at least one set");
  MacroMean out;
  Interval exact;
  bool constant = true;
  for (const auto& set : sets) {
    UCAS_CHECK(!set.empty(), "a set has at least one problem");
    const Summary summary = summarize(set);
    const bool extreme = summary.min == summary.max && (summary.min == 0 || summary.max == 1);
    constant = constant && extreme;
    const Interval own = clopper_pearson(extreme && summary.max == 1 ? summary.count : 0, summary.count, level);
    out.mean += summary.mean / static_cast<double>(sets.size());
    exact.low += own.low / static_cast<double>(sets.size());
    exact.high += own.high / static_cast<double>(sets.size());
  }
  constexpr double kUnmeasured = std::numeric_limits<double>::quiet_NaN();
  out.interval = {kUnmeasured, kUnmeasured};
  if (draws == 0) return out;
  out.interval = exact;
  if (constant) return out;
  Rng rng(seed, 0x6d616372);
  std::vector<double> means;
  for (int64_t draw = 0; draw < draws; ++draw) means.push_back(redrawn(sets, rng));
  std::sort(means.begin(), means.end());
  out.interval = {quantile(means, (1 - level) / 2), quantile(means, (1 + level) / 2)};
  return out;
}

}  // namespace ucas

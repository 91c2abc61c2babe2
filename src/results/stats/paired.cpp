#include "results/stats/paired.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"

namespace ucas {

namespace {

double mean_of_means(const std::vector<std::vector<double>>& sets) {
  double sum = 0;
  for (const std::vector<double>& set : sets) sum += mean_of(set);
  return sum / static_cast<double>(sets.size());
}

// Mean over sets of the mean of `flip(set, i)` over each set's problems.
template <class Flip>
double mean_of_flipped(const std::vector<std::vector<double>>& sets, Flip flip) {
  double total = 0;
  for (const std::vector<double>& set : sets) {
    double sum = 0;
    for (size_t i = 0; i < set.size(); ++i) sum += flip(set, i);
    total += sum / static_cast<double>(set.size());
  }
  return total / static_cast<double>(sets.size());
}

double welch_freedom(double u, double v, double n, double m) {
  return (u + v) * (u + v) / (u * u / (n - 1) + v * v / (m - 1));
}

double two_sided_t(double t, double freedom) { return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)); }

}  // namespace

double mcnemar(int64_t gained, int64_t lost) {
  int64_t n = gained + lost, few = std::min(gained, lost);
  if (n == 0) return 1;
  // P(X <= few) of a binomial(n, 1/2) is I_{1/2}(n - few, few + 1); by symmetry the other tail is the same.
  double tail = incomplete_beta(static_cast<double>(n - few), static_cast<double>(few + 1), 0.5);
  return std::min(1.0, 2 * tail);
}

PairedDifference paired_macro_difference(std::span<const PairedSet> sets, uint64_t seed, double level, int64_t draws) {
  UCAS_CHECK(draws > 0 && level > 0 && level < 1, "bootstrap needs a level inside (0, 1) and at least one resample");
  PairedDifference result;
  if (sets.empty()) return result;
  std::vector<std::vector<double>> difference;
  for (const PairedSet& set : sets) {
    UCAS_CHECK(set.a.size() == set.b.size() && !set.a.empty(), "the two models answered the same problems");
    std::vector<double>& d = difference.emplace_back();
    for (size_t i = 0; i < set.a.size(); ++i) d.push_back(set.b[i] - set.a[i]);
  }
  result.mean = mean_of_means(difference);
  Rng choose(seed, 0x6d626f6f), flip(seed, 0x6d666c69);  // streams of their own
  std::vector<double> means;
  int64_t reached = 0;
  const double observed = std::fabs(result.mean) * (1 - 1e-12);  // equal up to rounding counts as reached
  for (int64_t resample = 0; resample < draws; ++resample) {
    double total = 0;
    for (const std::vector<double>& set : difference) total += redraw_mean(set, {-1, 1}, choose);
    means.push_back(total / static_cast<double>(difference.size()));
    uint32_t bits = 0, left = 0;
    const double flipped = mean_of_flipped(difference, [&](const std::vector<double>& set, size_t i) {
      if (left == 0) {
        bits = flip.next();
        left = 32;
      }
      const bool keep = bits & 1;
      bits >>= 1;
      --left;
      return keep ? set[i] : -set[i];
    });
    reached += std::fabs(flipped) >= observed;
  }
  result.interval = percentile_interval(means, level);
  // Where all of few problems differ by the most that is possible, each resample is nearer to 0.
  result.interval.low = std::min(result.interval.low, result.mean);
  result.interval.high = std::max(result.interval.high, result.mean);
  result.p = static_cast<double>(reached + 1) / static_cast<double>(draws + 1);
  return result;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<double> adjusted(p.begin(), p.end());
  std::vector<size_t> order;
  for (size_t i = 0; i < p.size(); ++i) {
    if (std::isfinite(p[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p[i]; });
  double greatest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    greatest = std::max(greatest, std::min(1.0, static_cast<double>(order.size() - rank) * p[order[rank]]));
    adjusted[order[rank]] = greatest;
  }
  return adjusted;
}

double student_p(std::span<const double> values) {
  if (values.size() < 2 || constant(values)) return kUnknown;
  const double t = mean_of(values) / deviation_of(values) * std::sqrt(static_cast<double>(values.size()));
  return two_sided_t(t, static_cast<double>(values.size() - 1));
}

TwoSamples welch(std::span<const double> a, std::span<const double> b, double level) {
  TwoSamples out;
  out.change.value = mean_of(b) - mean_of(a);
  if (a.size() < 2 || b.size() < 2 || (constant(a) && constant(b))) return out;
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const double u = std::pow(deviation_of(a), 2) / n, v = std::pow(deviation_of(b), 2) / m, error = std::sqrt(u + v);
  const double freedom = welch_freedom(u, v, n, m);
  const double half = student_quantile(freedom, level) * error;
  out.change.low = out.change.value - half;
  out.change.high = out.change.value + half;
  out.p = two_sided_t(out.change.value / error, freedom);
  return out;
}

namespace {

struct VariancePart {
  double variance = 0, freedom = 0;
};

double half_width(std::span<const VariancePart> parts, double level) {
  double sum = 0;
  for (const VariancePart& part : parts) {
    if (part.variance > 0) sum += std::pow(student_quantile(part.freedom, level), 2) * part.variance;
  }
  return std::sqrt(sum);
}

TwoSamples weighted_t(double mean, std::span<const VariancePart> parts, double level) {
  const double half = half_width(parts, level);
  double low = 0, high = 1 - 1e-12;  // levels
  for (int i = 0; i < 45; ++i) {
    const double middle = low + (high - low) / 2;
    (half_width(parts, middle) < std::fabs(mean) ? low : high) = middle;
  }
  return {{mean, mean - half, mean + half}, 1 - high};
}

// What runs on the same problems give: the mean of each run and of each problem, and the mean square of the rest.
struct TwoWayMeans {
  std::vector<double> run, problem;
  std::vector<double> rest;  // of each set: s2(rest) / S
};

TwoWayMeans two_way_means(const RunRows& rows, std::span<const size_t> sets) {
  TwoWayMeans out;
  const auto runs = static_cast<double>(rows.size()), count = static_cast<double>(sets.size());
  out.run.assign(rows.size(), 0);
  size_t first = 0;
  for (size_t n : sets) {
    std::vector<double> of_run, of_problem(n);
    for (const std::vector<double>& row : rows) {
      of_run.push_back(mean_of(std::span(row).subspan(first, n)));
      for (size_t i = 0; i < n; ++i) of_problem[i] += row[first + i] / runs;
    }
    const double mean = mean_of(of_run);
    double squares = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      out.run[r] += of_run[r] / count;
      for (size_t i = 0; i < n; ++i) squares += std::pow(rows[r][first + i] - of_run[r] - of_problem[i] + mean, 2);
    }
    out.rest.push_back(squares / ((runs - 1) * static_cast<double>(n - 1) * runs));
    out.problem.insert(out.problem.end(), of_problem.begin(), of_problem.end());
    first += n;
  }
  return out;
}

// Of the problems' means, less what single answers scatter.
VariancePart problems_part(const std::vector<double>& problem, const std::vector<double>& rest,
                           std::span<const size_t> sets) {
  VariancePart part;
  size_t first = 0;
  for (size_t s = 0; s < sets.size(); ++s) {
    const double spread = deviation_of(std::span(problem).subspan(first, sets[s])), n = static_cast<double>(sets[s]);
    first += sets[s];
    if (sets[s] < 2) continue;
    part.variance += (spread * spread - rest[s]) / n / std::pow(static_cast<double>(sets.size()), 2);
    part.freedom += n - 1;
  }
  return part;
}

}  // namespace

TwoSamples two_way(const RunRows& differences, std::span<const size_t> sets, double level) {
  const TwoWayMeans means = two_way_means(differences, sets);
  TwoSamples out;
  out.change.value = mean_of(means.run);
  if (differences.size() < 2 || constant(means.run)) return out;
  const auto runs = static_cast<double>(differences.size());
  const VariancePart parts[] = {{std::pow(deviation_of(means.run), 2) / runs, runs - 1},
                                problems_part(means.problem, means.rest, sets)};
  return weighted_t(out.change.value, parts, level);
}

TwoSamples two_way(const RunRows& first, const RunRows& second, std::span<const size_t> sets, double level) {
  const TwoWayMeans a = two_way_means(first, sets), b = two_way_means(second, sets);
  const TwoSamples runs = welch(a.run, b.run, level);
  if (!runs.change.bounded()) return runs;
  const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  const double u = std::pow(deviation_of(a.run), 2) / n, v = std::pow(deviation_of(b.run), 2) / m;
  std::vector<double> problem, rest;
  for (size_t i = 0; i < a.problem.size(); ++i) problem.push_back(b.problem[i] - a.problem[i]);
  for (size_t s = 0; s < sets.size(); ++s) rest.push_back(a.rest[s] + b.rest[s]);
  const VariancePart parts[] = {{u + v, welch_freedom(u, v, n, m)}, problems_part(problem, rest, sets)};
  return weighted_t(runs.change.value, parts, level);
}

}  // namespace ucas

#include "report/trend.h"

#include <algorithm>
#include <cmath>

#include "core/metrics.h"

namespace ucas {

double KnownSteps::trailing(size_t i, size_t count) const {
  const size_t first = i + 1 > count ? i + 1 - count : 0;
  return mean_of(std::span(value).subspan(first, i + 1 - first));
}

double KnownSteps::before(size_t i, size_t count) const { return i == 0 ? kUnknown : trailing(i - 1, count); }

double KnownSteps::after(size_t i, size_t count) const { return trailing(size() - 1, std::min(count, size() - i)); }

KnownSteps series_of(const StepTable& table, const std::string& key) {
  KnownSteps series;
  const std::vector<double> values = table.mean_over(key);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    series.step.push_back(table.step[i]);
    series.value.push_back(values[i]);
  }
  return series;
}

namespace {

constexpr size_t kFewestValues = 4, kWidestWindow = 10;
constexpr double kLeastDifference = 0.03, kErrors = 4;  // of a difference of two means

// Of one value, told by neighbours: a slow trend is no noise, and the largest jump is none either.
double noise_of(const KnownSteps& series) {
  double sum = 0, largest = 0;
  for (size_t i = 1; i < series.size(); ++i) {
    const double square = std::pow(series.value[i] - series.value[i - 1], 2);
    sum += square;
    largest = std::max(largest, square);
  }
  return std::sqrt((sum - largest) / (2 * static_cast<double>(series.size() - 2)));
}

// Validations: the last against the first.
void judge_validations(const StepTable& table, const KnownSteps& series, Trend& trend) {
  if (series.size() < 2 || !trend.key.starts_with("val-core/")) return;
  double problems = 0;
  for (const std::string& key : table.fitting(metric::val_problems.key)) {
    if (const double count = table.last(key); std::isfinite(count)) problems += count;
  }
  trend.first = series.value.front();
  trend.last = series.value.back();
  trend.first_step = series.step.front();
  trend.last_step = series.step.back();
  const auto best = std::ranges::max_element(series.value) - series.value.begin();
  trend.best = series.value[static_cast<size_t>(best)];
  trend.best_step = series.step[static_cast<size_t>(best)];
  if (problems < 1) return;
  const auto shrunk = [&](double share) { return (share * problems + 1) / (problems + 2); };
  const double a = shrunk(trend.first), b = shrunk(trend.last);
  const double half = 1.96 * std::sqrt((a * (1 - a) + b * (1 - b)) / (problems + 2));
  trend.low = b - a - half;
  trend.high = b - a + half;
  trend.course = trend.low > 0 ? Course::rose : trend.high < 0 ? Course::fell : Course::flat;
  if (trend.course != Course::fell) return;
  size_t i = series.size() - 1;
  while (i > 0 && series.value[i - 1] < (trend.first + trend.last) / 2) --i;
  trend.since = series.step[i];
}

}  // namespace

Trend trend_of(const StepTable& table, const std::string& key) {
  Trend trend;
  trend.key = key;
  const KnownSteps series = series_of(table, key);
  if (series.size() < kFewestValues) {
    judge_validations(table, series, trend);
    return trend;
  }
  const size_t width = std::clamp<size_t>(series.size() / 5, 1, kWidestWindow);
  trend.first = series.trailing(width - 1, width);
  trend.last = series.trailing(series.size() - 1, width);
  size_t best = width - 1;
  for (size_t i = width - 1; i < series.size(); ++i) {
    if (series.trailing(i, width) >= series.trailing(best, width)) best = i;
  }
  trend.best = series.trailing(best, width);
  trend.best_step = series.step[best];
  const double least =
      std::max(kLeastDifference, kErrors * noise_of(series) * std::sqrt(2 / static_cast<double>(width)));
  if (trend.best - trend.last > least) {
    trend.course = Course::fell;
    size_t i = series.size();
    while (i > best + 1 && series.value[i - 1] < trend.best - least / 2) --i;
    trend.since = series.step[std::min(i, series.size() - 1)];
  } else {
    trend.course = trend.last - trend.first > least ? Course::rose : Course::flat;
    Trend ends{.key = key};  // scatter hides no validation below where it began
    judge_validations(table, series, ends);
    if (ends.course == Course::fell) return ends;
  }
  return trend;
}

bool has_risen(const StepTable& table) {
  bool rose = false;
  for (const char* key : kJudged) {
    const Course course = trend_of(table, key).course;
    if (course == Course::fell) return false;
    rose = rose || course == Course::rose;
  }
  return rose;
}

}  // namespace ucas

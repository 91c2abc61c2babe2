#include "stats/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "stats/spread.h"

namespace ucas {

namespace {

// 1 .. n, equal values sharing the mean of their places.
std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<double>(first + 1 + last) / 2;
    first = last;
  }
  return ranks;
}

}  // namespace

double auroc(std::span<const double> score, const std::vector<bool>& right) {
  UCAS_CHECK(score.size() == right.size(), "expected one score per answer");
  const std::vector<double> ranks = mean_ranks(score);
  double rank_sum = 0, positives = 0;  // of right answers
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!right[i]) continue;
    rank_sum += ranks[i];
    positives += 1;
  }
  const double negatives = static_cast<double>(ranks.size()) - positives;
  if (positives == 0 || negatives == 0) return kUnknown;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

std::vector<ReliabilityBin> reliability(std::span<const double> probability, const std::vector<bool>& right,
                                        int64_t bins) {
  UCAS_CHECK(probability.size() == right.size() && bins > 0,
             "expected one probability per answer and at least one bin");
  std::vector<ReliabilityBin> list(static_cast<size_t>(bins));
  double width = 1 / static_cast<double>(bins);
  for (size_t b = 0; b < list.size(); ++b) {
    list[b].low = static_cast<double>(b) * width;
    list[b].high = b + 1 == list.size() ? 1 : static_cast<double>(b + 1) * width;
  }
  for (size_t i = 0; i < probability.size(); ++i) {
    double at = std::ceil(std::clamp(probability[i], 0.0, 1.0) * static_cast<double>(bins)) - 1;
    ReliabilityBin& bin = list[static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(bins - 1)))];
    ++bin.count;
    bin.stated += probability[i];
    bin.right += right[i] ? 1 : 0;
  }
  for (ReliabilityBin& bin : list) {
    if (bin.count == 0) continue;
    bin.stated /= static_cast<double>(bin.count);
    bin.right /= static_cast<double>(bin.count);
  }
  return list;
}

double expected_calibration_error(std::span<const ReliabilityBin> bins) {
  double error = 0, count = 0;
  for (const ReliabilityBin& bin : bins) {
    error += static_cast<double>(bin.count) * std::fabs(bin.right - bin.stated);
    count += static_cast<double>(bin.count);
  }
  return count == 0 ? kUnknown : error / count;
}

}  // namespace ucas

#include "results/stats/samples.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "results/stats/spread.h"

namespace ucas {

double pass_at_k(SampleCount samples, int64_t k) {
  auto [n, c] = samples;
  UCAS_CHECK(n >= 1 && c >= 0 && c <= n && k >= 1 && k <= n, "pass@k needs 0 <= c <= n and 1 <= k <= n");
  if (n - c < k) return 1;
  double all_wrong = 1;
  for (int64_t i = n - c + 1; i <= n; ++i) all_wrong *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - all_wrong;
}

double frontier_at_k(SampleCount base, SampleCount model, int64_t k) {
  UCAS_CHECK(k < base.n, "the base needs samples beyond those already used");
  return (1 - pass_at_k(base, base.n - k)) * pass_at_k(model, k);
}

// Where the n - k hold none of c > 0 right ones, the k hold all.
double frontier_of_base(SampleCount base, int64_t k) {
  UCAS_CHECK(k < base.n, "the base needs samples for a second comparison");
  return base.c == 0 ? 0 : 1 - pass_at_k(base, base.n - k);
}

double mean_at_n(SampleCount samples) {
  UCAS_CHECK(samples.n >= 1, "statistics need at least one sample");
  return static_cast<double>(samples.c) / static_cast<double>(samples.n);
}

bool covers(SampleCount samples, double tau) { return mean_at_n(samples) >= tau; }

std::optional<size_t> majority(std::span<const int32_t> answer_class) {
  struct Votes {
    int64_t count = 0;
    size_t first = 0;
  };
  std::map<int32_t, Votes> by_class;
  for (size_t i = 0; i < answer_class.size(); ++i) {
    if (answer_class[i] < 0) continue;
    Votes& votes = by_class[answer_class[i]];
    if (votes.count++ == 0) votes.first = i;
  }
  std::optional<Votes> best;
  for (const auto& [name, votes] : by_class) {
    bool wins = !best || votes.count > best->count || (votes.count == best->count && votes.first < best->first);
    if (wins) best = votes;
  }
  if (!best) return std::nullopt;
  return best->first;
}

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

}  // namespace ucas

#include "stats/samples.h"

#include <map>

#include "base/error.h"

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

}  // namespace ucas

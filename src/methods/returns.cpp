#include "methods/returns.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ucas {

std::vector<double> token_rewards(const Batch& batch) {
  std::vector<double> r(batch.token.size(), 0.0);
  for (const Response& o : batch.responses) {
    if (o.length == 0) continue;
    auto first = static_cast<size_t>(o.first), last = first + static_cast<size_t>(o.length) - 1;
    if (!batch.reward_kl.empty()) {
      for (size_t t = first; t <= last; ++t) r[t] = -static_cast<double>(batch.reward_kl[t]);
    }
    r[last] += static_cast<double>(o.reward) + o.kl_penalty;
  }
  return r;
}

void discount_backwards(const Batch& batch, double gamma, std::span<double> rewards) {
  for (const Response& o : batch.responses) {
    auto first = static_cast<size_t>(o.first);
    for (size_t t = first + static_cast<size_t>(o.length); t-- > first + 1;) rewards[t - 1] += gamma * rewards[t];
  }
}

void whiten(std::span<double> x, int64_t ddof) {
  std::vector<double> values(x.begin(), x.end());
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) {
    return std::fill(x.begin(), x.end(), std::numeric_limits<double>::quiet_NaN());
  }
  std::sort(values.begin(), values.end());
  if (values.size() < 2 || values.front() == values.back()) return std::fill(x.begin(), x.end(), 0.0);
  double n = static_cast<double>(values.size()), sum = 0, squares = 0;
  for (double v : values) sum += v;
  double mu = sum / n;
  for (double v : values) squares += (v - mu) * (v - mu);
  double sigma = ddof == 0 ? std::sqrt(std::max(squares / n, 1e-8)) : std::sqrt(squares / (n - 1) + 1e-8);
  for (double& v : x) v = (v - mu) / sigma;
}

}  // namespace ucas

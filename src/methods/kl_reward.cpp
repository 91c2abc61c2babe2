#include "methods/kl_reward.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "methods/kl.h"

namespace ucas {

double take_kl_off_reward(Batch& batch, KlEstimator estimator, double beta) {
  size_t n = batch.token.size();
  UCAS_CHECK(batch.old_logprob.size() == n && batch.ref_logprob.size() == n, "KL in reward needs both log-probs");
  batch.reward_kl.assign(n, 0.0f);
  std::vector<double> row_means;
  for (Response& o : batch.responses) {
    double sum = 0, penalty = 0;
    auto first = static_cast<size_t>(o.first), end = first + static_cast<size_t>(o.length);
    for (size_t t = first; t < end; ++t) {
      double kl = kl_term(estimator, batch.old_logprob[t], batch.ref_logprob[t]).value;
      batch.reward_kl[t] = static_cast<float>(beta * kl);
      sum += kl;
      penalty += batch.reward_kl[t];
    }
    o.kl_penalty = static_cast<float>(penalty);
    o.reward -= o.kl_penalty;
    if (o.length > 0) row_means.push_back(sum / static_cast<double>(o.length));
  }
  bool nan = std::ranges::any_of(row_means, [](double mean) { return std::isnan(mean); });  // which cannot be sorted
  if (!nan) std::sort(row_means.begin(), row_means.end());
  double total = 0;
  for (double mean : row_means) total += mean;
  return row_means.empty() ? 0 : total / static_cast<double>(row_means.size());
}

double adapted_kl_coeff(double beta, double kl, double target, double horizon, int64_t rows) {
  if (std::isnan(kl)) return beta;  // the step's update is skipped and counted; the coefficient must outlive it
  return beta * (1 + std::clamp(kl / target - 1, -0.2, 0.2) * static_cast<double>(rows) / horizon);
}

}  // namespace ucas

#include "objective/loss/kl.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "objective/advantage/group_advantage.h"

namespace ucas {

namespace {

// exp(-d) + d - 1 with -d held in +-20 and the value in +-10, as in verl.
KlTerm k3_term(double d) {
  bool inside = std::fabs(d) <= 20;
  double minus_d = std::clamp(-d, -20.0, 20.0);
  double value = std::exp(minus_d) - minus_d - 1;
  if (value > 10) return {10, 0};
  return {value, inside ? 1 - std::exp(minus_d) : 0};
}

}  // namespace

KlTerm kl_term(KlEstimator estimator, double logprob, double ref_logprob) {
  double d = logprob - ref_logprob;
  if (std::isnan(d)) return {d, d};  // comparisons would make its derivative a number
  switch (estimator) {
    case KlEstimator::k1:
      return {d, 1};
    case KlEstimator::abs:
      return {std::fabs(d), static_cast<double>((d > 0) - (d < 0))};
    case KlEstimator::k2:
      return {d * d / 2, d};
    case KlEstimator::k3:
      return k3_term(d);
    case KlEstimator::k3_plus:
      return {k3_term(d).value, d};
  }
  return {};
}

double take_kl_off_reward(Batch& batch, KlEstimator estimator, double beta) {
  size_t n = batch.token.size();
  const std::vector<float>& reference = batch.signal("ref_logprob");
  UCAS_CHECK(batch.old_logprob.size() == n && reference.size() == n, "KL in reward needs both log-probs");
  batch.reward_kl.assign(n, 0.0f);
  std::vector<double> row_means;
  for (Response& o : batch.responses) {
    double sum = 0, penalty = 0;
    for (int64_t t = o.first; t < o.first + o.length; ++t) {
      double kl = kl_term(estimator, batch.old_logprob[t], reference[t]).value;
      batch.reward_kl[t] = static_cast<float>(beta * kl);
      sum += kl;
      penalty += batch.reward_kl[t];
    }
    o.kl_penalty = static_cast<float>(penalty);
    o.reward -= o.kl_penalty;
    if (o.length > 0 && o.trained) row_means.push_back(sum / static_cast<double>(o.length));
  }
  return row_means.empty() ? 0 : sorted_sum(row_means) / static_cast<double>(row_means.size());
}

EntropyBonus entropy_bonus(const ObjectiveConfig& config, double c, double entropy) {
  if (std::isnan(entropy)) return {0, c};
  return {.now = entropy <= config.entropy_target ? c : 0,
          .next = entropy < config.entropy_target ? c + kEntropyStep : std::max(0.0, c - kEntropyStep)};
}

}  // namespace ucas

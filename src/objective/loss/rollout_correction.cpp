#include "objective/loss/rollout_correction.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/metrics.h"

namespace ucas {

namespace {

// ln r, held where exp stays finite. A NaN stays one.
double held(double log_ratio) { return log_ratio < -20 ? -20 : log_ratio > 20 ? 20 : log_ratio; }

struct LogRatios {
  std::vector<double> log_ratio;  // of one response's tokens, held
  double sum = 0;
};

LogRatios log_ratios(const Sequence& s, std::span<const float> old_logprob, std::span<const float> rollout_logprob) {
  LogRatios r;
  for (int64_t t = s.first; t < s.first + s.length; ++t) {
    r.log_ratio.push_back(held(static_cast<double>(old_logprob[t]) - rollout_logprob[t]));
    r.sum += r.log_ratio.back();
  }
  return r;
}

void weigh(const ObjectiveConfig& objective, const Sequence& s, const LogRatios& r, RolloutCorrection& out) {
  for (size_t t = 0; t < r.log_ratio.size(); ++t) {
    double w = std::exp(objective.tis == Tis::token ? r.log_ratio[t] : held(r.sum));
    bool above = w > objective.tis_cap;
    if (above) w = objective.tis == Tis::sequence_mask ? 0 : objective.tis_cap;
    out.weight[s.first + t] = static_cast<float>(w);
    out.capped[s.first + t] = above;
  }
}

}  // namespace

RolloutCorrection rollout_correction(const ObjectiveConfig& objective, std::span<const Sequence> sequences,
                                     std::span<const float> old_logprob, std::span<const float> rollout_logprob) {
  RolloutCorrection out;
  if (objective.tis == Tis::off) return out;
  UCAS_CHECK(rollout_logprob.size() == old_logprob.size(), "TIS needs the sampler's log-probs");
  out.weight.assign(old_logprob.size(), 1.0f);
  out.capped.assign(old_logprob.size(), 0);
  for (const Sequence& s : sequences) weigh(objective, s, log_ratios(s, old_logprob, rollout_logprob), out);
  return out;
}

std::vector<std::pair<std::string, double>> correction_metrics(const ObjectiveConfig& objective, const Batch& batch) {
  if (objective.tis == Tis::off) return {};
  std::vector<Sequence> sequences;
  double tokens = 0, weight = 0, capped = 0;
  for (const Response& o : batch.responses) {
    if (o.trained) sequences.push_back({o.first, o.length, 0});
  }
  const RolloutCorrection c = rollout_correction(objective, sequences, batch.old_logprob, batch.sampler_logprob());
  for (const Sequence& s : sequences) {
    for (int64_t t = s.first; t < s.first + s.length; ++t) {
      tokens += 1;
      weight += c.weight[t];
      capped += c.capped[t];
    }
  }
  return {{metric::rollout_tis_weight_mean.key, tokens == 0 ? 1 : weight / tokens},
          {metric::rollout_tis_clipped_share.key, tokens == 0 ? 0 : capped / tokens}};
}

}  // namespace ucas

#include "objective/correction/rollout_correction.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/metrics.h"

namespace ucas {

namespace {

// ln r, held where exp stays finite. A NaN stays one.
double held(double log_ratio) { return log_ratio < -20 ? -20 : log_ratio > 20 ? 20 : log_ratio; }

// A NaN is not rejected: the trainer must see it and skip the update.
bool outside(double x, double low, double high) { return x < low || x > high; }

struct LogRatios {
  std::vector<double> log_ratio;  // of one response's tokens, held
  double sum = 0, k3_sum = 0;
};

double k3_of(double log_ratio) { return std::exp(log_ratio) - 1 - log_ratio; }

LogRatios log_ratios(const Sequence& s, std::span<const float> old_logprob, std::span<const float> rollout_logprob) {
  LogRatios r;
  for (int64_t t = s.first; t < s.first + s.length; ++t) {
    r.log_ratio.push_back(held(static_cast<double>(old_logprob[t]) - rollout_logprob[t]));
    r.sum += r.log_ratio.back();
    r.k3_sum += k3_of(r.log_ratio.back());
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

bool is_rejected(const ObjectiveConfig& objective, const LogRatios& r, size_t t) {
  double low = objective.reject_low, high = objective.reject_high, length = static_cast<double>(r.log_ratio.size());
  switch (objective.reject) {
    case Reject::off:
      return false;
    case Reject::token_ratio:
      return outside(std::exp(r.log_ratio[t]), low, high);
    case Reject::sequence_ratio:
      return outside(std::exp(held(r.sum)), low, high);
    case Reject::geometric_ratio:
      return outside(std::exp(r.sum / length), low, high);
    case Reject::token_k3:
      return k3_of(r.log_ratio[t]) > high;
    case Reject::sequence_k3:
      return r.k3_sum / length > high;
  }
  return false;
}

}  // namespace

RolloutCorrection rollout_correction(const ObjectiveConfig& objective, std::span<const Sequence> sequences,
                                     std::span<const float> old_logprob, std::span<const float> rollout_logprob) {
  RolloutCorrection out;
  if (objective.tis == Tis::off && objective.reject == Reject::off) return out;
  UCAS_CHECK(rollout_logprob.size() == old_logprob.size(), "TIS and rejection need the sampler's log-probs");
  if (objective.tis != Tis::off) {
    out.weight.assign(old_logprob.size(), 1.0f);
    out.capped.assign(old_logprob.size(), 0);
  }
  if (objective.reject != Reject::off) out.rejected.assign(old_logprob.size(), 0);
  for (const Sequence& s : sequences) {
    LogRatios r = log_ratios(s, old_logprob, rollout_logprob);
    if (!out.weight.empty()) weigh(objective, s, r, out);
    for (size_t t = 0; !out.rejected.empty() && t < r.log_ratio.size(); ++t) {
      out.rejected[s.first + t] = is_rejected(objective, r, t);
    }
  }
  return out;
}

const std::vector<float>& sampler_logprob(const ObjectiveConfig& objective, const Batch& batch) {
  return objective.correct_by == SamplerDistribution::sampled ? batch.rollout_logprob : batch.sampler_logprob();
}

std::vector<std::pair<std::string, double>> correction_metrics(const ObjectiveConfig& objective, const Batch& batch) {
  std::vector<Sequence> sequences;
  int64_t tokens = 0;
  for (const Response& o : batch.responses) {
    if (o.trained) sequences.push_back({o.first, o.length, 0});
    if (o.trained) tokens += o.length;
  }
  RolloutCorrection c = rollout_correction(objective, sequences, batch.old_logprob, sampler_logprob(objective, batch));
  double n = static_cast<double>(tokens), kept = 0, rejected = 0, weight = 0, capped = 0;
  for (const Sequence& s : sequences) {
    for (int64_t t = s.first; t < s.first + s.length; ++t) {
      bool out = !c.rejected.empty() && c.rejected[t] != 0;
      rejected += out;
      if (out || c.weight.empty()) continue;
      kept += 1;
      weight += c.weight[t];
      capped += c.capped[t];
    }
  }
  std::vector<std::pair<std::string, double>> metrics;
  if (!c.weight.empty()) {
    metrics.emplace_back(metric::rollout_tis_weight_mean.key, kept == 0 ? 1 : weight / kept);
    metrics.emplace_back(metric::rollout_tis_clipped_share.key, kept == 0 ? 0 : capped / kept);
  }
  if (!c.rejected.empty()) metrics.emplace_back(metric::rollout_rejected_share.key, n == 0 ? 0 : rejected / n);
  return metrics;
}

}  // namespace ucas

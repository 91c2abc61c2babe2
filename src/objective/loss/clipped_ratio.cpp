#include "objective/loss/clipped_ratio.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace ucas {

Ratio ratio_of(double logprob, double old_logprob) {
  constexpr double kLargest = 20;
  double difference = logprob - old_logprob;
  double value = std::exp(difference < -kLargest ? -kLargest : difference > kLargest ? kLargest : difference);
  return {value, std::fabs(difference) > kLargest ? 0 : value};
}

void PolicyLoss::token_loss(const LossInput& in, LossOutput& out) const { clipped_ratio_loss(in, out); }

void clipped_ratio_loss(const LossInput& in, LossOutput& out) {
  UCAS_CHECK(in.objective != nullptr, "the objective's options are missing");
  const ObjectiveConfig& objective = *in.objective;
  for (size_t t = 0; t < in.logprob.size(); ++t) {
    double A = in.advantage[t];
    if (A == 0) {
      out.loss[t] = out.d_logprob[t] = 0;
      out.clipped[t] = 0;
      continue;
    }
    Ratio r = ratio_of(in.logprob[t], in.old_logprob[t]);
    double ratio = r.value;
    double l1 = -A * ratio;
    double l2 = -A * std::clamp(ratio, 1 - objective.clip_low, 1 + objective.clip_high);
    double loss = l2 > l1 ? l2 : l1;
    double derivative = l2 > l1 ? 0 : -A * r.derivative;
    uint8_t clipped = l2 > l1 ? 1 : 0;
    double l3 = -A * objective.dual_clip;
    if (objective.dual_clip > 0 && A < 0 && loss > l3) {
      loss = l3;
      derivative = 0;
      clipped = 2;
    }
    out.loss[t] = static_cast<float>(loss);
    out.d_logprob[t] = static_cast<float>(derivative);
    out.clipped[t] = clipped;
  }
}

void sequence_ratio_loss(const LossInput& in, LossOutput& out) {
  const double low = 1 - in.objective->clip_low, high = 1 + in.objective->clip_high;
  for (const Sequence& o_i : in.sequences) {
    double sum = 0;
    const auto length = static_cast<double>(o_i.length);
    for (int64_t t = o_i.first; t < o_i.first + o_i.length; ++t) {
      sum += static_cast<double>(in.logprob[t]) - in.old_logprob[t];
    }
    if (length == 0) continue;
    const Ratio s_i = ratio_of(sum / length, 0);
    for (int64_t t = o_i.first; t < o_i.first + o_i.length; ++t) {
      const double A = in.advantage[t];
      if (A == 0) continue;
      const double l1 = -A * s_i.value, l2 = -A * std::clamp(s_i.value, low, high);
      out.loss[t] = static_cast<float>(l2 > l1 ? l2 : l1);
      out.d_logprob[t] = static_cast<float>(l2 > l1 ? 0 : -A * s_i.derivative);
      out.clipped[t] = l2 > l1;
    }
  }
}

}  // namespace ucas

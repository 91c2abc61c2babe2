#include "objective/loss/sequence_ratio.h"

#include <algorithm>

#include "objective/loss/clipped_ratio.h"

namespace ucas {

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

#include "objective/loss/value_loss.h"

#include <algorithm>

#include "base/error.h"

namespace ucas {

ValueTerm value_term(double V, double V_old, double R, double eps) {
  double l1 = (V - R) * (V - R);
  if (eps == 0) return {0.5 * l1, V - R, false};
  double V_clip = std::clamp(V, V_old - eps, V_old + eps);
  double l2 = (V_clip - R) * (V_clip - R);
  // Where l2 is larger, V is outside the clip range and V_clip does not depend on it.
  if (l2 > l1) return {0.5 * l2, 0.0, true};
  return {0.5 * l1, V - R, false};
}

void value_loss(std::span<const float> V, std::span<const float> V_old, std::span<const float> R, double eps,
                double total_tokens, std::span<float> d_value, ValueLossMetrics& metrics) {
  UCAS_CHECK(V_old.size() == V.size() && R.size() == V.size() && d_value.size() == V.size(),
             "value loss: arrays of one length");
  double w = 1 / total_tokens;
  for (size_t t = 0; t < V.size(); ++t) {
    ValueTerm term = value_term(V[t], V_old[t], R[t], eps);
    d_value[t] = static_cast<float>(w * term.d_value);
    metrics.vf_loss += w * term.loss;
    metrics.vf_clipfrac += term.clipped ? w : 0;
    metrics.vpred_mean += w * static_cast<double>(V[t]);
  }
}

double explained_variance(std::span<const float> V, std::span<const float> R) {
  UCAS_CHECK(V.size() == R.size(), "expected one value per return");
  if (V.empty()) return 0;
  auto n = static_cast<double>(V.size());
  double mean_R = 0, mean_D = 0, var_R = 0, var_D = 0;
  for (size_t t = 0; t < V.size(); ++t) {
    mean_R += R[t] / n;
    mean_D += (static_cast<double>(R[t]) - V[t]) / n;
  }
  for (size_t t = 0; t < V.size(); ++t) {
    double r = R[t] - mean_R, d = static_cast<double>(R[t]) - V[t] - mean_D;
    var_R += r * r;
    var_D += d * d;
  }
  double degrees = std::max(1.0, n - 1);
  return 1 - (var_D / degrees) / (var_R / degrees + 1e-5);
}

}  // namespace ucas

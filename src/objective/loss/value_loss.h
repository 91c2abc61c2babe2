// The critic's clipped value loss with its derivative, and how well values explain returns. Fed by
// train/auxiliary/critic.
#pragma once

#include <span>

namespace ucas {

struct ValueTerm {
  double loss = 0;       // 1/2 max((V - R)^2, (V_old + clip(V - V_old, +-eps) - R)^2)
  double d_value = 0;    // d loss / d V
  bool clipped = false;  // the second square is the larger: no gradient
};
ValueTerm value_term(double V, double V_old, double R, double eps);  // eps 0: no clipping

// Aggregates over what was added so far, so after the last micro-batch those of the whole update.
struct ValueLossMetrics {
  double vf_loss = 0;      // token mean
  double vf_clipfrac = 0;  // share of tokens
  double vpred_mean = 0;   // mean of V as this update sees it
};

// Some tokens of an update of `total_tokens`: writes d (token mean of the loss) / d V, and adds their share to
// `metrics`. However the update is cut into micro-batches, gradients and metrics add up to the same. All spans [n].
void value_loss(std::span<const float> V, std::span<const float> V_old, std::span<const float> R, double eps,
                double total_tokens, std::span<float> d_value, ValueLossMetrics& metrics);

// 1 - var(R - V) / (var(R) + 1e-5), over tokens: 1 = perfect, 0 = no better than a constant. 0 if there are none.
double explained_variance(std::span<const float> V, std::span<const float> R);

}  // namespace ucas

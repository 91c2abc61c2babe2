// SAPO: instead of a clip, a soft gate that closes as the ratio leaves 1, faster for wrong responses.
//   loss_t = -(4 / tau) sigmoid(tau (r_t - 1)) A,   tau = tau_pos if A > 0, else tau_neg
//   d loss_t / d lp_t = -4 sigmoid (1 - sigmoid) r_t A,   which is -A at r = 1
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

class Sapo final : public GroupRelative {
 public:
  // The clip options have no effect.
  explicit Sapo(std::string_view) { objective_ = {.dual_clip = 0, .aggregation = Aggregation::seq_mean_token_mean}; }
  void fields(Fields& f) override {
    f.field("tau_pos", tau_pos_, Range{1e-6, 1e6}, "temperature of the gate for right responses; larger = steeper");
    f.field("tau_neg", tau_neg_, Range{1e-6, 1e6}, "temperature of the gate for wrong responses; larger = steeper");
    GroupRelative::fields(f);
  }
  std::vector<Equation> equations() const override {
    return {
        equation("A"),
        {"gate", str("loss_t = -(4 / tau) sigmoid(tau (r_t - 1)) A, tau = ", tau_pos_, " if A > 0, else ", tau_neg_),
         "the further the ratio from 1 the weaker the gradient, without an edge"}};
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      double A = in.advantage[t];
      if (A == 0) continue;
      double tau = A > 0 ? tau_pos_ : tau_neg_;
      Ratio r = ratio_of(in.logprob[t], in.old_logprob[t]);
      double x = tau * (r.value - 1);
      double gate = 1 / (1 + std::exp(-x)), closed = 1 / (1 + std::exp(x));  // sigmoid and 1 - sigmoid
      out.loss[t] = static_cast<float>(-4 / tau * gate * A);
      out.d_logprob[t] = static_cast<float>(-4 * gate * closed * r.derivative * A);
    }
  }

 private:
  double tau_pos_ = 1.0, tau_neg_ = 1.05;
};

}  // namespace

MethodRow sapo_row() {
  return {.title = "SAPO",
          .paper = "Gao et al. 2025, Soft Adaptive Policy Optimization (arXiv:2511.20347)",
          .presets = {"paper"},
          .create = create<Sapo>};
}

}  // namespace ucas

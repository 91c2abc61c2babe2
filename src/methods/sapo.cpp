// SAPO: instead of a clip, a soft gate that closes as the ratio leaves 1, faster for wrong responses.
//   loss_t = -(4 / tau) sigmoid(tau (r_t - 1)) A,   tau = tau_pos if A > 0, else tau_neg
//   d loss_t / d lp_t = -4 sigmoid (1 - sigmoid) r_t A,   which is -A at r = 1
#include <cmath>

#include "base/str.h"
#include "methods/clipped_ratio.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

struct Config {
  double tau_pos = 1.0;
  double tau_neg = 1.05;
  GroupAdvantageConfig group;

  void fields(Fields& f) {
    f.field("tau_pos", tau_pos, Range{1e-6, 1e6}, "steepness of the gate for right responses");
    f.field("tau_neg", tau_neg, Range{1e-6, 1e6}, "and for wrong ones");
    group.fields(f);
  }
};

class Sapo final : public Method {
 public:
  std::string title() const override { return "SAPO"; }
  std::string paper() const override { return "Gao et al. 2025, Soft Adaptive Policy Optimization (arXiv:2511.20347)"; }
  // The clip options have no effect.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::seq_mean_token_mean;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  std::vector<Equation> equations() const override {
    return {group_advantage_equation(config_.group, "A"),
            {"gate",
             str("loss_t = -(4 / tau) sigmoid(tau (r_t - 1)) A, tau = ", config_.tau_pos, " if A > 0, else ",
                 config_.tau_neg),
             "the further the ratio from 1 the weaker the gradient, without an edge"}};
  }
  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_.group, advantage, trace);
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      double A = in.advantage[t];
      if (A == 0) continue;
      double tau = A > 0 ? config_.tau_pos : config_.tau_neg;
      Ratio r = ratio_of(in.logprob[t], in.old_logprob[t]);
      double x = tau * (r.value - 1);
      double gate = 1 / (1 + std::exp(-x)), closed = 1 / (1 + std::exp(x));  // sigmoid and 1 - sigmoid
      out.loss[t] = static_cast<float>(-4 / tau * gate * A);
      out.d_logprob[t] = static_cast<float>(-4 * gate * closed * r.derivative * A);
    }
  }

 private:
  Config config_;
};

}  // namespace

std::unique_ptr<Method> make_sapo() { return std::make_unique<Sapo>(); }

}  // namespace ucas

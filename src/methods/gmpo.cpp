// GMPO: the geometric mean of a response's ratios where GRPO takes the arithmetic one, so that a single extreme token
// cannot carry the update. Each log-ratio is clipped first, on the side that the advantage would push it to:
//   x_t = A > 0 ? min(lp - old, eps_high) : max(lp - old, -eps_low)            eps in log space, 0.4: (e^-0.4, e^0.4)
//   loss_i = -A exp(mean_t x_t), mean over responses
//   d loss_i / d lp_t = -A exp(mean_t x_t) / L_i where x_t is not clipped, else 0
#include <cmath>

#include "base/str.h"
#include "methods/clipped_ratio.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"
#include "methods/selection.h"

namespace ucas {

namespace {

class Gmpo final : public Method {
 public:
  std::string title() const override { return "GMPO"; }
  std::string paper() const override {
    return "Zhao et al. 2025, Geometric-Mean Policy Optimization (arXiv:2507.20673)";
  }
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.4;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::seq_mean_token_mean;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  std::vector<Equation> equations() const override {
    return {group_advantage_equation(config_, "A"),
            {"clip", "x_t = A > 0 ? min(lp - old, eps_high) : max(lp - old, -eps_low)",
             "each log-ratio is clipped on the side the advantage pushes it to"},
            {"objective", "loss_i = -A exp(mean_t x_t)", "the geometric mean of a response's ratios"}};
  }
  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_, advantage, trace);
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (const Sequence& o_i : in.sequences) {
      double sum = 0, A_sum = 0, length = 0;
      for_valid_tokens(in, o_i, [&](size_t t) {
        double x = static_cast<double>(in.logprob[t]) - in.old_logprob[t];
        out.clipped[t] = in.advantage[t] > 0   ? x > in.objective->clip_high
                         : in.advantage[t] < 0 ? x < -in.objective->clip_low
                                               : 0;
        sum += out.clipped[t] == 0 ? x : in.advantage[t] > 0 ? in.objective->clip_high : -in.objective->clip_low;
        A_sum += in.advantage[t];
        length += 1;
      });
      if (A_sum == 0) continue;
      double A = A_sum / length;  // all tokens of a response have the same
      Ratio ratio = ratio_of(sum / length, 0);
      for_valid_tokens(in, o_i, [&](size_t t) {
        out.loss[t] = static_cast<float>(-A * ratio.value);
        out.d_logprob[t] = out.clipped[t] != 0 ? 0 : static_cast<float>(-A * ratio.derivative);
      });
    }
  }

 private:
  GroupAdvantageConfig config_;
};

}  // namespace

std::unique_ptr<Method> make_gmpo() { return std::make_unique<Gmpo>(); }

}  // namespace ucas

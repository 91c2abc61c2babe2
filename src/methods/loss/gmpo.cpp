// GMPO: the geometric mean of a response's ratios where GRPO takes the arithmetic one, so that a single extreme token
// cannot carry the update. Each log-ratio is clipped first, on the side that the advantage would push it to:
//   x_t = A > 0 ? min(lp - old, eps_high) : max(lp - old, -eps_low)            eps in log space, 0.4: (e^-0.4, e^0.4)
//   loss_i = -A exp(mean_t x_t), mean over responses
//   d loss_i / d lp_t = -A exp(mean_t x_t) / L_i where x_t is not clipped, else 0
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

class Gmpo final : public GroupRelative {
 public:
  explicit Gmpo(std::string_view) {
    objective_ = {.clip_low = 0.4, .clip_high = 0.4, .dual_clip = 0, .aggregation = Aggregation::seq_mean_token_mean};
  }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"clip", "x_t = A > 0 ? min(lp - old, eps_high) : max(lp - old, -eps_low)",
             "each log-ratio is clipped on the side the advantage pushes it to"},
            {"objective", "loss_i = -A exp(mean_t x_t)", "the geometric mean of a response's ratios"}};
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    const double eps_low = in.objective->clip_low, eps_high = in.objective->clip_high;
    for (const Sequence& o_i : in.sequences) {
      double sum = 0, A_sum = 0;
      const auto length = static_cast<double>(o_i.length);
      for (int64_t t = o_i.first; t < o_i.first + o_i.length; ++t) {
        double x = static_cast<double>(in.logprob[t]) - in.old_logprob[t];
        out.clipped[t] = in.advantage[t] > 0 ? x > eps_high : in.advantage[t] < 0 ? x < -eps_low : 0;
        sum += out.clipped[t] == 0 ? x : in.advantage[t] > 0 ? eps_high : -eps_low;
        A_sum += in.advantage[t];
      }
      if (A_sum == 0) continue;
      double A = A_sum / length;  // all tokens of a response have the same
      Ratio ratio = ratio_of(sum / length, 0);
      for (int64_t t = o_i.first; t < o_i.first + o_i.length; ++t) {
        out.loss[t] = static_cast<float>(-A * ratio.value);
        out.d_logprob[t] = out.clipped[t] != 0 ? 0 : static_cast<float>(-A * ratio.derivative);
      }
    }
  }
  bool whole_responses() const override { return true; }
};

}  // namespace

MethodRow gmpo_row() {
  return {.title = "GMPO",
          .paper = "Zhao et al. 2025, Geometric-Mean Policy Optimization (arXiv:2507.20673)",
          .presets = {"paper"},
          .create = create<Gmpo>};
}

}  // namespace ucas

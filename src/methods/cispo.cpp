// CISPO: the ratio's weight is clipped, never the token: every token keeps a gradient.
//   loss_t = -sg(w_t) A lp_t                                                                       (Eq. 4)
//   w_t = clip(r_t, 1 - eps_low, 1 + eps_high) (verl), or min(r_t, cap) (TRL: the cap itself, 5 in ScaleRL)  (Eq. 5)
// sg: w is a number, not a function of lp. The derivative is -w A, not that of the loss as a function of lp.
#include <algorithm>

#include "base/str.h"
#include "methods/clipped_ratio.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

struct Config {
  double cap = 0;
  GroupAdvantageConfig group;

  void fields(Fields& f) {
    f.field("cap", cap, Range{0, 1e6}, "w = min(ratio, cap) as in TRL; 0 = clip(ratio, 1 - clip_low, 1 + clip_high)");
    group.fields(f);
  }
};

class Cispo final : public Method {
 public:
  std::string title() const override { return "CISPO"; }
  std::string paper() const override {
    return "MiniMax 2025, MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention "
           "(arXiv:2506.13585)";
  }
  std::vector<std::string> presets() const override { return {"verl", "trl"}; }
  void use_preset(const std::string& name) override { config_.cap = name == "trl" ? 5 : 0; }
  // The article sets no lower bound (here 1: the weight may fall to 0) and does not print the upper one; 0.2 is that of
  // verl's example. Dynamic sampling and the token mean are the article's.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = 1;
    objective.clip_high = 0.2;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::token_mean;
    objective.keep_mixed_groups = true;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  std::vector<Equation> equations() const override {
    return {group_advantage_equation(config_.group, "A"),
            {"Eq. 5",
             config_.cap > 0 ? str("w_t = min(r_t, ", config_.cap, ")")
                             : std::string("w_t = clip(r_t, 1 - eps_low, 1 + eps_high)"),
             "the ratio is a bounded weight, without a gradient of its own"},
            {"Eq. 4", "loss_t = -sg(w_t) A lp_t", "no token is ever cut off from learning"}};
  }
  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_.group, advantage, trace);
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    const double low = 1 - in.objective->clip_low, high = 1 + in.objective->clip_high;
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      double A = in.advantage[t], r = ratio_of(in.logprob[t], in.old_logprob[t]).value;
      if (A == 0) continue;
      // A NaN ratio passes through both.
      double w = config_.cap > 0 ? (r > config_.cap ? config_.cap : r) : std::clamp(r, low, high);
      out.loss[t] = static_cast<float>(-w * A * in.logprob[t]);
      out.d_logprob[t] = static_cast<float>(-w * A);
      out.clipped[t] = w != r && r == r;
    }
  }

 private:
  Config config_;
};

}  // namespace

std::unique_ptr<Method> make_cispo() { return std::make_unique<Cispo>(); }

}  // namespace ucas

// CISPO: the ratio's weight is clipped, never the token: every token keeps a gradient.
//   loss_t = -sg(w_t) A lp_t                                                                       (Eq. 4)
//   w_t = clip(r_t, 1 - eps_low, 1 + eps_high) (verl), or min(r_t, cap) (TRL: the cap itself, 5 in ScaleRL)  (Eq. 5)
// sg: w is a number, not a function of lp. The derivative is -w A, not that of the loss as a function of lp.
#include <algorithm>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

class Cispo final : public GroupRelative {
 public:
  // The article sets no lower bound (here 1: the weight may fall to 0) and does not print the upper one; 0.2 is that of
  // verl's example. Dynamic sampling and the token mean are the article's.
  explicit Cispo(std::string_view preset) : cap_(preset == "trl" ? 5 : 0) {
    objective_ = {.clip_low = 1, .clip_high = 0.2, .dual_clip = 0, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("cap", cap_, Range{0, 1e6},
            "cap of the weight w = min(ratio, cap), as in TRL; 0 = clip(ratio, 1 - clip_low, 1 + clip_high)");
    GroupRelative::fields(f);
  }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"Eq. 5",
             cap_ > 0 ? str("w_t = min(r_t, ", cap_, ")") : std::string("w_t = clip(r_t, 1 - eps_low, 1 + eps_high)"),
             "the ratio is a bounded weight, without a gradient of its own"},
            {"Eq. 4", "loss_t = -sg(w_t) A lp_t", "no token is ever cut off from learning"}};
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    const double low = 1 - in.objective->clip_low, high = 1 + in.objective->clip_high;
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      double A = in.advantage[t], r = ratio_of(in.logprob[t], in.old_logprob[t]).value;
      if (A == 0) continue;
      // A NaN ratio passes through both.
      double w = cap_ > 0 ? (r > cap_ ? cap_ : r) : std::clamp(r, low, high);
      out.loss[t] = static_cast<float>(-w * A * in.logprob[t]);
      out.d_logprob[t] = static_cast<float>(-w * A);
      out.clipped[t] = w != r && r == r;
    }
  }

 private:
  double cap_;  // 0 = none
};

}  // namespace

MethodRow cispo_row() {
  return {.title = "CISPO",
          .paper =
              "MiniMax 2025, MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention "
              "(arXiv:2506.13585)",
          .presets = {"verl", "trl"},
          .create = create<Cispo>};
}

}  // namespace ucas

// GSPO: the unit of reward is the response, so the unit of the ratio is too. One ratio per response, clipped as a
// whole:
//   s_i = exp(mean_t (lp_t - old_t))                                                                  (Eq. 7)
//   loss_i = max(-A s_i, -A clip(s_i, 1 - eps_low, 1 + eps_high)), mean over responses                (Eq. 5)
// In the mean over a response's tokens each has the share 1 / L_i, which is d s_i / d lp_t = s_i / L_i: every token's
// derivative is that of its own loss, as in verl (and as in GSPO-token, Eq. 13, where A differs between tokens).
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

class Gspo final : public GroupRelative {
 public:
  explicit Gspo(std::string_view) {
    objective_ = {.clip_low = 3e-4, .clip_high = 4e-4, .dual_clip = 0, .aggregation = Aggregation::seq_mean_token_mean};
  }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"Eq. 7", "s_i = exp(mean_t (lp_t - old_t))", "one ratio per response, with its length taken out"},
            {"Eq. 5", "loss_i = max(-A s_i, -A clip(s_i, 1 - eps_low, 1 + eps_high))",
             "a response is clipped as a whole or not at all"}};
  }
  void token_loss(const LossInput& in, LossOutput& out) const override { sequence_ratio_loss(in, out); }
  bool whole_responses() const override { return true; }
};

}  // namespace

MethodRow gspo_row() {
  return {.title = "GSPO",
          .paper = "Zheng et al. 2025, Group Sequence Policy Optimization (arXiv:2507.18071)",
          .presets = {"paper"},
          .create = create<Gspo>};
}

}  // namespace ucas

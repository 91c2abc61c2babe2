// REINFORCE++: no critic and no groups. A token's return is what reward is still to come, less the KL penalty of the
// tokens on the way (reward.kl_coeff); the advantage is that return, whitened over the whole batch. One response per
// prompt is enough.
#include <algorithm>

#include "base/str.h"
#include "methods/registry.h"
#include "objective/advantage/returns.h"

namespace ucas {

namespace {

// The loss is the default, verl's PPO: clip 0.2, dual clip 3, token mean.
class ReinforcePp final : public Method {
 public:
  explicit ReinforcePp(std::string_view) {}
  void fields(Fields& f) override {
    f.field("gamma", gamma_, Range{0, 1}, "discount factor of later rewards, per token");
  }
  std::vector<Equation> equations() const override {
    return {{"token reward", "r_t = R [t last] - KL_t",
             "the response's reward at its last token, less the KL penalty of each token where one is configured"},
            {"return", gamma_ == 1 ? "R_t = r_t + R_{t+1}" : str("R_t = r_t + ", gamma_, " R_{t+1}"),
             "what a token leads to"},
            {"advantage", "A_t = (R_t - mean) / sqrt(var + 1e-8), over the trained tokens of the batch",
             "whitened over the whole step: the baseline is the batch, not the prompt's group"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    std::vector<double> R = token_rewards(batch);
    discount_backwards(batch, gamma_, R);
    recording.record_tokens("R", to_float(R));
    whiten(batch, R);
    std::copy(R.begin(), R.end(), advantage.begin());
  }

 private:
  double gamma_ = 1;
};

}  // namespace

MethodRow reinforce_pp_row() {
  return {
      .title = "REINFORCE++",
      .paper =
          "Hu et al. 2025, REINFORCE++: An Efficient RLHF Algorithm with Robustness to Both Prompt and Reward Models "
          "(arXiv:2501.03262)",
      .presets = {"verl"},
      .create = create<ReinforcePp>};
}

}  // namespace ucas

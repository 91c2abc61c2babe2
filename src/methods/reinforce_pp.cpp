// REINFORCE++: no critic and no groups. A token's return is what reward is still to come, less the KL penalty of the
// tokens on the way (reward.kl_coeff); the advantage is that return, whitened over the whole batch. One response per
// prompt is enough.
#include "base/str.h"
#include "methods/registry.h"
#include "methods/returns.h"

namespace ucas {

namespace {

class ReinforcePp final : public Method {
 public:
  std::string title() const override { return "REINFORCE++"; }
  std::string paper() const override {
    return "Hu et al. 2025, REINFORCE++: An Efficient RLHF Algorithm with Robustness to Both Prompt and Reward Models "
           "(arXiv:2501.03262)";
  }
  std::vector<std::string> presets() const override { return {"verl"}; }
  ObjectiveConfig objective_defaults() const override { return {}; }  // clip 0.2, dual clip 3, token mean: verl's PPO
  void fields(Fields& f) override {
    f.field("gamma", gamma_, Range{0, 1}, "discount of the reward that is still to come");
  }
  std::vector<Equation> equations() const override {
    return {{"token reward", "r_t = R [t last] - KL_t",
             "the response's reward at its last token, less the KL penalty of each token where one is configured"},
            {"return", gamma_ == 1 ? "R_t = r_t + R_{t+1}" : str("R_t = r_t + ", gamma_, " R_{t+1}"),
             "what a token leads to"},
            {"advantage", "A_t = (R_t - mean) / sqrt(var + 1e-8), over all tokens of the batch",
             "whitened over the whole step: the baseline is the batch, not the prompt's group"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    std::vector<double> R = token_rewards(batch);
    discount_backwards(batch, gamma_, R);
    trace.rows.push_back({"R", true, std::vector<float>(R.begin(), R.end())});
    whiten(R);
    for (size_t t = 0; t < R.size(); ++t) advantage[t] = static_cast<float>(R[t]);
  }

 private:
  double gamma_ = 1;
};

}  // namespace

std::unique_ptr<Method> make_reinforce_pp() { return std::make_unique<ReinforcePp>(); }

}  // namespace ucas

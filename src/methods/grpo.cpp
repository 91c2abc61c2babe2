// GRPO: the advantage of every token is the z-score of its response's reward within the group (Eq. 3).
//
//   preset     eps    aggregation          dual clip  KL loss  alone
//   paper      1e-6   seq_mean_token_mean  -          -        its reward   the baseline of the UCAS paper
//   deepseek   1e-6   seq_mean_token_mean  -          0.04 k3  its reward   the DeepSeekMath article
//   verl       1e-6   token_mean           3          -        its reward
//   oat        1e-8   seq_mean_token_mean  -          -        0
//   trl        1e-4   token_mean           -          -        0
//
// The article leaves eps and the ddof of its deviation open; all code divides by G - 1.
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class Grpo final : public Method {
 public:
  std::string title() const override { return "GRPO"; }
  std::string paper() const override {
    return "Shao et al. 2024, DeepSeekMath: Pushing the Limits of Mathematical Reasoning (arXiv:2402.03300)";
  }
  std::vector<std::string> presets() const override { return {"paper", "deepseek", "verl", "oat", "trl"}; }
  void use_preset(const std::string& name) override {
    if (name == "deepseek") objective_.kl_coeff = 0.04;
    if (name == "verl") objective_.dual_clip = 3;
    if (name == "verl" || name == "trl") objective_.aggregation = Aggregation::token_mean;
    if (name == "oat") config_.eps = 1e-8;
    if (name == "trl") config_.eps = 1e-4;
    if (name == "oat" || name == "trl") config_.group_of_one = GroupOfOne::zero;
  }
  ObjectiveConfig objective_defaults() const override { return objective_; }
  void fields(Fields& f) override { config_.fields(f); }
  std::vector<Equation> equations() const override { return {group_advantage_equation(config_, "Sec. 4.1.2")}; }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_, advantage, trace);
  }

 private:
  // Eq. 1: symmetric clip, mean over each response's tokens, then over responses; no dual clip.
  static ObjectiveConfig eq_1() {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.2;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::seq_mean_token_mean;
    return objective;
  }

  GroupAdvantageConfig config_;
  ObjectiveConfig objective_ = eq_1();
};

}  // namespace

std::unique_ptr<Method> make_grpo() { return std::make_unique<Grpo>(); }

}  // namespace ucas

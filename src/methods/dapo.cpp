// DAPO: GRPO's advantages, and four changes around them: clip-higher, the token mean, dynamic sampling (all three are
// objective defaults here) and overlong shaping, which is part of the reward (reward.overlong_buffer).
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class Dapo final : public Method {
 public:
  std::string title() const override { return "DAPO"; }
  std::string paper() const override {
    return "Yu et al. 2025, DAPO: An Open-Source LLM Reinforcement Learning System at Scale (arXiv:2503.14476)";
  }
  std::vector<std::string> presets() const override { return {"paper", "released"}; }
  void use_preset(const std::string& name) override { released_ = name == "released"; }
  // Clip 0.2 / 0.28 is the article's, the dual clip of 10 that of verl's recipe/dapo. The article's mean is over the
  // tokens of a prompt's responses, then over prompts; the recipe's over all tokens of the mini-batch.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = 0.2;
    objective.clip_high = 0.28;
    objective.dual_clip = 10;
    objective.aggregation = released_ ? Aggregation::token_mean : Aggregation::group_token_mean;
    objective.keep_mixed_groups = true;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  std::vector<Equation> equations() const override { return {group_advantage_equation(config_, "Eq. 9")}; }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_, advantage, trace);
  }

 private:
  GroupAdvantageConfig config_;
  bool released_ = false;
};

}  // namespace

std::unique_ptr<Method> make_dapo() { return std::make_unique<Dapo>(); }

}  // namespace ucas

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
  // Clip 0.2 / 0.28 and the token mean are the article's; the dual clip of 10 is that of verl's recipe/dapo.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = 0.2;
    objective.clip_high = 0.28;
    objective.dual_clip = 10;
    objective.aggregation = Aggregation::token_mean;
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
};

}  // namespace

std::unique_ptr<Method> make_dapo() { return std::make_unique<Dapo>(); }

}  // namespace ucas

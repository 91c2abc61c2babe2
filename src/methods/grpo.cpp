// GRPO: the advantage of every token is the z-score of its response's reward within the group (Eq. 3).
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
  // Eq. 1: symmetric clip, mean over each response's tokens, then over responses; no dual clip. The article's KL loss
  // (0.04, k3) is left out, as in the GRPO baseline of the UCAS paper.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.2;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::seq_mean_token_mean;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_, advantage, trace);
  }

 private:
  GroupAdvantageConfig config_;
};

}  // namespace

std::unique_ptr<Method> make_grpo() { return std::make_unique<Grpo>(); }

}  // namespace ucas

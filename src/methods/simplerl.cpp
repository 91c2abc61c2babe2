// SimpleRL-Zoo: plain GRPO held near the base model by a KL loss and kept exploring by an entropy bonus.
//
//   J = token mean of min(rho A, clip(rho, 0.8, 1.2) A) - beta KL_k3(pi, pi_ref) + c H
//
//   preset    beta   c
//   paper     1e-4   1e-3   models up to 14B
//   released  1e-3   1e-3   the script's default, and the article's for larger models
//
// Departures: the released code takes the token mean inside every micro-batch and averages those; here it is that of
// the mini-batch (docs/numerics.md, "Exact accumulation"). Its reward is 1 or 0, without a format term: reward.correct,
// reward.wrong.
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class SimpleRl final : public Method {
 public:
  std::string title() const override { return "SimpleRL-Zoo"; }
  std::string paper() const override {
    return "Zeng et al. 2025, SimpleRL-Zoo: Investigating and Taming Zero Reinforcement Learning for Open Base Models "
           "in "
           "the Wild (arXiv:2503.18892)";
  }
  std::vector<std::string> presets() const override { return {"paper", "released"}; }
  void use_preset(const std::string& name) override { kl_coeff_ = name == "released" ? 1e-3 : 1e-4; }
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.2;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::token_mean;
    objective.entropy_coeff = 1e-3;
    objective.kl_coeff = kl_coeff_;
    objective.kl_estimator = KlEstimator::k3;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  std::vector<Equation> equations() const override { return {group_advantage_equation(config_, "advantage")}; }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_, advantage, trace);
  }

 private:
  GroupAdvantageConfig config_;
  double kl_coeff_ = 1e-4;
};

}  // namespace

std::unique_ptr<Method> make_simplerl() { return std::make_unique<SimpleRl>(); }

}  // namespace ucas

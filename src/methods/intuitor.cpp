// Intuitor: no labels, no verifier. The reward of a response is the policy's own self-certainty, the mean over its
// tokens of KL(U || p_t), U uniform over the vocabulary; from there on it is GRPO.
// KL(U || p) = C - ln V with C = logsumexp(z) - mean_v z, the confidence that every step records. The constant ln V
// cancels in the z-score, so C itself is used, as in the authors' code.
#include "base/error.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class Intuitor final : public Method {
 public:
  std::string title() const override { return "Intuitor"; }
  std::string paper() const override {
    return "Zhao et al. 2025, Learning to Reason without External Rewards (arXiv:2505.19590); self-certainty: Kang et "
           "al. 2025 (arXiv:2502.18581)";
  }
  std::vector<std::string> presets() const override { return {"paper", "verl"}; }
  void use_preset(const std::string& name) override {
    if (name != "verl") return;
    objective_.dual_clip = 3;
    objective_.aggregation = Aggregation::token_mean;
  }
  ObjectiveConfig objective_defaults() const override { return objective_; }
  void fields(Fields& f) override { config_.fields(f); }
  Needs needs() const override {
    Needs needs;
    needs.labels = false;
    return needs;
  }
  std::vector<Equation> equations() const override {
    return {{"reward", "u_i = mean_t KL(U || p_t) = mean_t C_it - ln V",
             "the reward is how far the policy is from uniform at every step; no answer is looked at"},
            group_advantage_equation(config_, "advantage", "u")};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    if (batch.confidence.size() != advantage.size()) {
      throw Error(
          "unsupported",
          "Intuitor needs the confidence of every token; the step was saved without \"confidence\" in its arrays");
    }
    Trace::Row reward{"u", false, std::vector<float>(batch.responses.size())};
    size_t row = 0;
    auto A = [&](std::span<const Response> group) {
      std::vector<double> u;
      for (const Response& o_i : group) {
        u.push_back(mean(Batch::tokens(batch.confidence, o_i)) - o_i.kl_penalty);
        reward.values[row++] = static_cast<float>(u.back());
      }
      // An empty response has no certainty to compare.
      if (u.size() == 1 && config_.group_of_one == GroupOfOne::reward) return std::vector{u[0] / (1 + config_.eps)};
      return zscore(u, non_empty(group), config_.eps, config_.ddof);
    };
    broadcast(batch, A, advantage, trace);
    trace.rows.push_back(std::move(reward));
  }

 private:
  // GRPO's loss with the article's KL loss.
  static ObjectiveConfig grpo_loss() {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.2;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::seq_mean_token_mean;
    objective.kl_coeff = 0.005;
    return objective;
  }

  GroupAdvantageConfig config_;
  ObjectiveConfig objective_ = grpo_loss();
};

}  // namespace

std::unique_ptr<Method> make_intuitor() { return std::make_unique<Intuitor>(); }

}  // namespace ucas

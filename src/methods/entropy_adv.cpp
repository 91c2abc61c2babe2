// Entropy advantage ("reasoning with exploration"): tokens at which the policy hesitates count more in right responses
// and are punished less in wrong ones.
//   psi_t = min(alpha H_t, |A_t| / kappa)      A'_t = A_t + psi_t       (H of the policy being updated, detached)
// kappa > 1, so the sign of A never changes, and A = 0 stays 0. Then DAPO's loss with A'.
// preset grpo: A is the group z-score, alpha 0.4. preset ppo: A = R - V whitened over the batch (GAE with gamma and
// lambda 1, with a critic), alpha 0.1.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "methods/clipped_ratio.h"
#include "methods/gae.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"
#include "methods/returns.h"

namespace ucas {

namespace {

struct Config {
  double alpha = 0.4;
  double kappa = 2;
  GroupAdvantageConfig group;
  bool critic_baseline = false;
  CriticConfig critic;

  void fields(Fields& f) {
    f.field("alpha", alpha, Range{0, 100}, "weight of the token's entropy");
    f.field("kappa", kappa, Range{1, 1e6}, "psi is at most |A| / kappa");
    if (critic_baseline) {
      f.section("critic", critic);
    } else {
      group.fields(f);
    }
  }
};

float psi(const Config& config, double A, double H) {
  return A == 0 ? 0 : static_cast<float>(std::min(config.alpha * H, std::fabs(A) / config.kappa));
}

class EntropyAdv final : public Method {
 public:
  std::string title() const override { return "Entropy advantage"; }
  std::string paper() const override {
    return "Cheng et al. 2025, Reasoning with Exploration: An Entropy Perspective (arXiv:2506.14758)";
  }
  std::vector<std::string> presets() const override { return {"grpo", "ppo"}; }
  void use_preset(const std::string& name) override {
    config_.critic_baseline = name == "ppo";
    config_.alpha = config_.critic_baseline ? 0.1 : 0.4;
  }
  // DAPO's clip-higher and token mean in both; mixed groups matter only where the group is the baseline.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = 0.2;
    objective.clip_high = 0.28;
    objective.dual_clip = 10;
    objective.aggregation = Aggregation::token_mean;
    objective.keep_mixed_groups = !config_.critic_baseline;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  Needs needs() const override {
    Needs needs;
    if (config_.critic_baseline) needs.critic = config_.critic;
    return needs;
  }
  std::vector<Equation> equations() const override {
    Equation base = config_.critic_baseline
                        ? Equation{"GAE", "A_t = whiten(R - V_t)", "the reward less what the critic expected"}
                        : group_advantage_equation(config_.group, "A");
    return {base,
            {"psi", str("psi_t = min(", config_.alpha, " H_t, |A_t| / ", config_.kappa, ")"),
             "a bonus for hesitation, never so large that it turns the sign"},
            {"A'", "A'_t = A_t + psi_t", "added to the advantage before the clipped loss; no gradient through H"}};
  }

  // psi of the old policy is recorded for the report; the loss takes that of the update.
  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    if (config_.critic_baseline) {
      UCAS_CHECK(batch.value.size() == advantage.size(), "the critic's values are missing");
      std::vector<double> A(advantage.size());
      gae(batch, token_rewards(batch), 1, 1, A);
      whiten(A);
      std::ranges::transform(A, advantage.begin(), [](double a) { return static_cast<float>(a); });
      trace.rows.push_back({"A", true, std::vector<float>(advantage.begin(), advantage.end())});
    } else {
      broadcast_group_advantage(batch, config_.group, advantage, trace);
    }
    if (batch.entropy.size() != advantage.size()) return;  // nothing to record
    Trace::Row row{"psi", true, std::vector<float>(advantage.size())};
    double share = 0;
    for (size_t t = 0; t < advantage.size(); ++t) {
      row.values[t] = psi(config_, advantage[t], batch.entropy[t]);
      share += advantage[t] != 0 ? row.values[t] / std::fabs(advantage[t]) : 0;
    }
    trace.rows.push_back(std::move(row));
    trace.metrics.emplace_back("entropy_adv/psi_share",
                               share / static_cast<double>(std::max<size_t>(1, advantage.size())));
  }
  void returns(const Batch& batch, std::span<float> returns) const override {
    std::vector<double> R = token_rewards(batch);
    discount_backwards(batch, 1, R);
    std::ranges::transform(R, returns.begin(), [](double r) { return static_cast<float>(r); });
  }

  void token_loss(const LossInput& in, LossOutput& out) const override {
    std::vector<float> shaped(in.advantage.begin(), in.advantage.end());  // A'
    for (size_t t = 0; t < shaped.size(); ++t) shaped[t] += psi(config_, shaped[t], in.entropy[t]);
    LossInput with_psi = in;
    with_psi.advantage = shaped;
    clipped_ratio_loss(with_psi, out);
  }

 private:
  Config config_;
};

}  // namespace

std::unique_ptr<Method> make_entropy_adv() { return std::make_unique<EntropyAdv>(); }

}  // namespace ucas

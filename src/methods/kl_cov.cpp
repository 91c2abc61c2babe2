// KL-Cov: the tokens whose log-prob and advantage vary together most drive the policy's entropy down; each update holds
// them back with a penalty on how far they have moved. No ratio clip anywhere:
//   cov_t = (A_t - mean A)(lp_t - mean lp), and K = the max(1, ratio n) tokens with the largest
//   loss_t = -A r + [t in K] coef |lp - old|
// The article writes KL(pi_old || pi) for the penalty; this is the released code's estimate of it. Its gradient is
// coef sign(lp - old), so nothing happens on the first, on-policy update.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/clipped_ratio.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"
#include "methods/selection.h"

namespace ucas {

namespace {

struct Config {
  double ratio = 2e-3;  // share of tokens held back: 2e-3 for 7B, 2e-4 for 32B
  double coef = 1;
  Scope scope = Scope::mini;
  GroupAdvantageConfig group;

  void fields(Fields& f) {
    f.field("ratio", ratio, Range{0, 1}, "share of the scope's tokens under the penalty, one at least (a fraction)");
    f.field("coef", coef, Range{0, 1e6}, "weight of the penalty |lp - old|");
    scope_field(f, scope);
    group.fields(f);
  }
};

class KlCov final : public Method {
 public:
  std::string title() const override { return "KL-Cov"; }
  std::string paper() const override {
    return "Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models "
           "(arXiv:2505.22617)";
  }
  // The release chooses within each micro-batch.
  std::vector<std::string> presets() const override { return {"paper", "released"}; }
  void use_preset(const std::string& name) override { config_.scope = name == "released" ? Scope::micro : Scope::mini; }
  // The clip options have no effect; token mean, DAPO's data and dynamic sampling as in its scripts.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::token_mean;
    objective.keep_mixed_groups = true;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  std::vector<Equation> equations() const override {
    return {group_advantage_equation(config_.group, "A"),
            {"covariance", str("cov_t = (A_t - mean A)(lp_t - mean lp), means over the ", words(config_.scope)),
             "how much raising the token both pays and sharpens the policy"},
            {"KL-Cov",
             str("loss_t = -A r + ", config_.coef, " |lp - old| on the max(1, ", config_.ratio,
                 " n) tokens of largest cov_t; -A r elsewhere, unclipped"),
             "tokens of high covariance are held near the old policy"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_.group, advantage, trace);
  }

  SelectionScope selection_scope() const override { return ucas::selection_scope(config_.scope); }
  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    std::vector<TokenAt> tokens = valid_tokens(in);
    auto k = std::max<size_t>(1, static_cast<size_t>(config_.ratio * static_cast<double>(tokens.size())));
    for (size_t index : largest(in, tokens, covariances(in, tokens), k)) mark[index] = 1;
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      double A = in.advantage[t], moved = static_cast<double>(in.logprob[t]) - in.old_logprob[t];
      Ratio r = ratio_of(in.logprob[t], in.old_logprob[t]);
      double loss = A == 0 ? 0 : -A * r.value, derivative = A == 0 ? 0 : -A * r.derivative;
      if (!in.mark.empty() && in.mark[t] != 0) {
        loss += config_.coef * std::fabs(moved);
        derivative += std::isnan(moved) ? moved : moved > 0 ? config_.coef : moved < 0 ? -config_.coef : 0;
      }
      out.loss[t] = static_cast<float>(loss);
      out.d_logprob[t] = static_cast<float>(derivative);
    }
  }
  bool silent_at_zero_advantage() const override { return false; }  // the penalty looks at no advantage
  // actor/ppo_kl is mean |lp - old|, as released.
  double drift(double logprob, double old_logprob) const override { return std::fabs(logprob - old_logprob); }

 private:
  Config config_;
};

}  // namespace

std::unique_ptr<Method> make_kl_cov() { return std::make_unique<KlCov>(); }

}  // namespace ucas

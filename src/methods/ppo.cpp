// PPO as Open-Reasoner-Zero runs it: a learned critic V says, token by token, what reward it expects; the advantage is
// what came instead (GAE), normalised over the whole step. No groups: several samples of a prompt are only more
// samples, so a prompt that is always right or always wrong is no special case, its tokens still differ in V. With the
// article's gamma = lambda = 1 every token of a response has A_t = R - V_t, and the critic learns R itself.
#include "base/error.h"
#include "base/str.h"
#include "methods/gae.h"
#include "methods/registry.h"
#include "methods/returns.h"

namespace ucas {

namespace {

// biased: (A - mean) / sqrt(max(var, 1e-8)) with var / n (ORZ); unbiased: / sqrt(var + 1e-8) with var / (n - 1) (verl).
enum class Normalize { biased, unbiased, off };

struct Config {
  double gamma = 1, lambda = 1;
  Normalize normalize = Normalize::biased;
  double dual_clip = 0;
  CriticConfig critic;

  void fields(Fields& f) {
    f.field("gamma", gamma, Range{0, 1}, "discount of later rewards, per token");
    f.field("lambda", lambda, Range{0, 1}, "GAE: 1 = returns minus values, 0 = one-step errors of the critic");
    f.choice("normalize", normalize, {"biased", "unbiased", "off"},
             "advantages over the whole step: variance over n, floored at 1e-8 (ORZ); over n - 1, plus 1e-8 (verl)");
    f.section("critic", critic);
  }
};

// The article's table and the repository's playground/orz_7b_ppo.py agree.
Config orz() {
  Config c;
  c.critic.updates = 12;
  c.critic.value_clip = 0.2;
  c.critic.optimizer.lr = 5e-6;
  c.critic.optimizer.beta2 = 0.95;
  c.critic.optimizer.weight_decay = 0;
  c.critic.optimizer.warmup_steps = 50;
  return c;
}

// Defaults of verl's PPO trainer.
Config verl() {
  Config c;
  c.normalize = Normalize::unbiased;
  c.dual_clip = 3;
  c.critic.updates = 1;
  c.critic.value_clip = 0.5;
  c.critic.optimizer.lr = 1e-5;
  return c;
}

std::vector<float> to_float(std::span<const double> values) { return {values.begin(), values.end()}; }

class Ppo final : public Method {
 public:
  std::string title() const override { return "PPO (Open-Reasoner-Zero)"; }
  std::string paper() const override {
    return "Hu et al. 2025, Open-Reasoner-Zero: An Open Source Approach to Scaling Up Reinforcement Learning on the "
           "Base "
           "Model (arXiv:2503.24290)";
  }
  std::vector<std::string> presets() const override { return {"orz", "verl"}; }
  void use_preset(const std::string& name) override { config_ = name == "verl" ? verl() : orz(); }
  // Clip 0.2 and the token mean in both; only verl has a dual clip. ORZ takes the mean inside packed buffers of 16384
  // tokens and then over buffers; here it is the mean over all tokens of the mini-batch, whatever the packing.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.2;
    objective.dual_clip = config_.dual_clip;
    objective.aggregation = Aggregation::token_mean;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  Needs needs() const override {
    Needs needs;
    needs.critic = config_.critic;
    return needs;
  }

  std::vector<Equation> equations() const override {
    double gamma = config_.gamma, decay = config_.gamma * config_.lambda;
    const CriticConfig& critic = config_.critic;
    std::vector<Equation> list;
    list.push_back({"GAE", str("delta_t = r_t + ", gamma, " V_{t+1} - V_t;  A_t = delta_t + ", decay, " A_{t+1}"),
                    gamma == 1 && decay == 1 ? "the reward still to come, less what the critic expected at this token"
                                             : "the critic's errors from this token on, later ones counting less"});
    if (config_.normalize == Normalize::biased) {
      list.push_back({"normalisation", "A = (A - mean A) / sqrt(max(var A, 1e-8)), var over n",
                      "over all tokens of the step; exactly 0 where all A are equal"});
    } else if (config_.normalize == Normalize::unbiased) {
      list.push_back({"normalisation", "A = (A - mean A) / sqrt(var A + 1e-8), var over n - 1",
                      "over all tokens of the step; exactly 0 where all A are equal"});
    }
    list.push_back({"returns", "R_t = A_t + V_t (A_t before normalisation)", "what the critic learns to predict"});
    std::string clipped = str("1/2 max((V - R)^2, (V_old + clip(V - V_old, +-", critic.value_clip, ") - R)^2)");
    list.push_back(
        {"critic loss", critic.value_clip > 0 ? clipped : "1/2 (V - R)^2",
         str("token mean; ", critic.updates, " critic update(s) a step, each on its share of the responses, ",
             "learning rate ", critic.optimizer.lr)});
    return list;
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    std::vector<double> A = raw(batch);
    trace.rows.push_back({"V", true, batch.value});
    trace.rows.push_back({"A_gae", true, to_float(A)});
    if (config_.normalize != Normalize::off) whiten(A, config_.normalize == Normalize::biased ? 0 : 1);
    for (size_t t = 0; t < A.size(); ++t) advantage[t] = static_cast<float>(A[t]);
  }

  void returns(const Batch& batch, std::span<float> returns) const override {
    std::vector<double> A = raw(batch);
    for (size_t t = 0; t < A.size(); ++t) returns[t] = static_cast<float>(A[t] + batch.value[t]);
  }

 private:
  std::vector<double> raw(const Batch& batch) const {
    std::vector<double> A(batch.token.size());
    gae(batch, token_rewards(batch), config_.gamma, config_.lambda, A);
    return A;
  }

  Config config_ = orz();
};

}  // namespace

std::unique_ptr<Method> make_ppo() { return std::make_unique<Ppo>(); }

}  // namespace ucas

// PPO as Open-Reasoner-Zero runs it: a learned critic V says, token by token, what reward it expects; the advantage is
// what came instead (GAE), normalised over the whole step. No groups: several samples of a prompt are only more
// samples, so a prompt that is always right or always wrong is no special case, its tokens still differ in V. With the
// article's gamma = lambda = 1 every token of a response has A_t = R - V_t, and the critic learns R itself.
#include <algorithm>

#include "base/str.h"
#include "methods/registry.h"
#include "objective/advantage/returns.h"

namespace ucas {

namespace {

// biased: (A - mean) / sqrt(max(var, 1e-8)) with var / n (ORZ); unbiased: / sqrt(var + 1e-8) with var / (n - 1) (verl).
enum class PpoNormalize { biased, unbiased, off };

// The article's table and the repository's playground/orz_7b_ppo.py agree.
CriticConfig orz_critic() {
  CriticConfig critic;
  critic.updates = 12;
  critic.value_clip = 0.2;
  critic.optimizer.lr = 5e-6;
  critic.optimizer.beta2 = 0.95;
  critic.optimizer.weight_decay = 0;
  critic.optimizer.warmup_steps = 50;
  return critic;
}

// Defaults of verl's PPO trainer.
CriticConfig verl_critic() {
  CriticConfig critic;
  critic.updates = 1;
  critic.value_clip = 0.5;
  critic.optimizer.lr = 1e-5;
  return critic;
}

class Ppo final : public Method {
 public:
  // Clip 0.2 and the token mean in both; only verl has a dual clip. ORZ takes the mean inside packed buffers of 16384
  // tokens and then over buffers; here it is the mean over all tokens of the mini-batch, whatever the packing.
  explicit Ppo(std::string_view preset) {
    bool verl = preset == "verl";
    normalize_ = verl ? PpoNormalize::unbiased : PpoNormalize::biased;
    critic_ = verl ? verl_critic() : orz_critic();
    objective_ = {.dual_clip = verl ? 3.0 : 0.0};
  }
  void fields(Fields& f) override {
    f.field("gamma", gamma_, Range{0, 1}, "discount factor per token");
    f.field("lambda", lambda_, Range{0, 1}, "GAE lambda: 1 = returns minus values, 0 = one-step errors of the critic");
    f.choice("normalize", normalize_, {"biased", "unbiased", "off"},
             "normalization of advantages over the step: biased = variance over n, floored at 1e-8 (ORZ); unbiased = "
             "over n - 1, plus 1e-8 (verl)");
    f.section("critic", critic_);
  }
  Needs needs() const override { return {.critic = critic_}; }

  std::vector<Equation> equations() const override {
    const double decay = gamma_ * lambda_;
    std::vector<Equation> list;
    list.push_back({"GAE", str("delta_t = r_t + ", gamma_, " V_{t+1} - V_t;  A_t = delta_t + ", decay, " A_{t+1}"),
                    gamma_ == 1 && decay == 1 ? "the reward still to come, less what the critic expected at this token"
                                              : "the critic's errors from this token on, later ones counting less"});
    if (normalize_ == PpoNormalize::biased) {
      list.push_back({"normalisation", "A = (A - mean A) / sqrt(max(var A, 1e-8)), var over n",
                      "over the trained tokens of the step; exactly 0 where all A are equal"});
    } else if (normalize_ == PpoNormalize::unbiased) {
      list.push_back({"normalisation", "A = (A - mean A) / sqrt(var A + 1e-8), var over n - 1",
                      "over the trained tokens of the step; exactly 0 where all A are equal"});
    }
    list.push_back({"returns", "R_t = A_t + V_t (A_t before normalisation)", "what the critic learns to predict"});
    std::string clipped = str("1/2 max((V - R)^2, (V_old + clip(V - V_old, +-", critic_.value_clip, ") - R)^2)");
    list.push_back(
        {"critic loss", critic_.value_clip > 0 ? clipped : "1/2 (V - R)^2",
         str("token mean; ", critic_.updates, " critic update(s) a step, each on its share of the responses, ",
             "learning rate ", critic_.optimizer.lr)});
    return list;
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    std::vector<double> A = gae(batch, token_rewards(batch), gamma_, lambda_);
    recording.record_tokens("V", batch.signal("value"));
    recording.record_tokens("A_gae", to_float(A));
    if (normalize_ != PpoNormalize::off) whiten(batch, A, normalize_ == PpoNormalize::biased ? 0 : 1);
    std::copy(A.begin(), A.end(), advantage.begin());
  }

  void returns(const Batch& batch, std::span<float> returns) const override {
    std::vector<double> A = gae(batch, token_rewards(batch), gamma_, lambda_);
    const std::vector<float>& V = batch.signal("value");
    for (size_t t = 0; t < A.size(); ++t) returns[t] = static_cast<float>(A[t] + V[t]);
  }

 private:
  double gamma_ = 1, lambda_ = 1;
  PpoNormalize normalize_;
  CriticConfig critic_;
};

}  // namespace

MethodRow ppo_row() {
  return {.title = "PPO (Open-Reasoner-Zero)",
          .paper =
              "Hu et al. 2025, Open-Reasoner-Zero: An Open Source Approach to Scaling Up Reinforcement Learning on the "
              "Base Model (arXiv:2503.24290)",
          .presets = {"orz", "verl"},
          .create = create<Ppo>};
}

}  // namespace ucas

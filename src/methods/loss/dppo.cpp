// DPPO: PPO's trust region by a divergence instead of a ratio. A ratio of 2 is nothing for a token of probability 1e-5
// and everything for one of 0.4; what bounds the policy's change is how far its distribution has moved. Of that, each
// token shows a lower bound: the divergence of the pair (this token, any other) between the sampler mu and the policy
// pi (the article's binary form),
//   TV  D_t = |pi_t - mu_t|                    KL  D_t = mu_t ln(mu_t / pi_t) + (1 - mu_t) ln((1 - mu_t) / (1 - pi_t))
// A token is left without a gradient where it is out of the region and its advantage pushes it further out:
//   M_t = 0 if D_t > delta_high, pi_t > mu_t and A > 0, or D_t > delta_low, pi_t < mu_t and A < 0;   else 1
//   loss_t = -sg(min(pi_t / mu_t, cap)) M_t A lp_t,   mean over all tokens, masked ones included
//
//   preset  D   delta (both)  cap
//   tv      TV  0.15          10
//   kl      KL  0.05          10
// delta_low and delta_high are objective.clip_low and clip_high. mu is the sampler's log-prob, as the article insists
// (anchor = "old": the trainer's of before the update, its ablation "recompute"). Where the program samples itself on a
// CPU the two distributions are bit-identical. The advantage is GRPO's. The article's top-K form is left out.
// Departure: the released binary KL adds 1e-8 to both 1 - mu and 1 - pi; here it is exact, and infinite at pi = 1.
// Read for this: the authors' code (sail-sg/Stable-RL: core_algos.py, actor/utils.py) and abstract; TRL's former DPPO
// trainer, which has the article's deltas and K (its cap is 20).
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

enum class Anchor { sampler, old };
enum class Divergence { tv, kl };

// Of log-probs under mu and pi: two cells, this token and any other. A NaN passes through.
double token_divergence(Divergence kind, double mu, double pi) {
  if (kind == Divergence::tv) return std::fabs(std::exp(pi) - std::exp(mu));
  const double rest = -std::expm1(mu);  // 1 - exp(mu), without losing digits where it is small
  return std::exp(mu) * (mu - pi) + (rest <= 0 ? 0 : rest * (std::log(rest) - std::log(-std::expm1(pi))));
}

class Dppo final : public GroupRelative {
 public:
  explicit Dppo(std::string_view preset) : divergence_(preset == "kl" ? Divergence::kl : Divergence::tv) {
    const double delta = divergence_ == Divergence::kl ? 0.05 : 0.15;
    objective_ = {.clip_low = delta, .clip_high = delta, .dual_clip = 0};
  }
  void fields(Fields& f) override {
    f.choice("divergence", divergence_, {"tv", "kl"},
             "divergence of the trust region of the pair (this token, any other): total variation, or KL");
    f.choice("anchor", anchor_, {"sampler", "old"},
             "anchor of trust region and weight: rollout log-probs of the sampler, or old log-probs of the trainer");
    f.field("cap", cap_, Range{1e-6, 1e6}, "maximum importance weight pi / mu");
    GroupRelative::fields(f);
  }
  std::vector<Equation> equations() const override {
    const bool tv = divergence_ == Divergence::tv;
    return {equation("A"),
            {"divergence",
             tv ? "D_t = |pi_t - mu_t|" : "D_t = mu_t ln(mu_t / pi_t) + (1 - mu_t) ln((1 - mu_t) / (1 - pi_t))",
             str(tv ? "total variation" : "KL", " of the pair (this token, any other)", ", between the ",
                 anchor_ == Anchor::sampler ? "sampler mu" : "policy of before the update, mu,", " and the policy pi")},
            {"mask", "M_t = 0 where D_t > clip_high, pi_t > mu_t and A > 0, or D_t > clip_low, pi_t < mu_t and A < 0",
             "a token that has left the trust region is not pushed further out; back into it, it may"},
            {"objective", str("loss_t = -sg(min(pi_t / mu_t, ", cap_, ")) M_t A lp_t"),
             "inside the region the policy gradient, weighted for the difference of the two policies; rare tokens may "
             "change by large factors"}};
  }

  void token_loss(const LossInput& in, LossOutput& out) const override {
    const auto anchor = anchor_ == Anchor::old ? in.old_logprob : in.rollout_logprob;
    const double low = in.objective->clip_low, high = in.objective->clip_high;
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      const double A = in.advantage[t], pi = in.logprob[t], mu = anchor[t];
      if (A == 0) continue;
      const double ratio = ratio_of(pi, mu).value, w = ratio > cap_ ? cap_ : ratio;
      const double D = token_divergence(divergence_, mu, pi);
      if ((A > 0 && pi > mu && D > high) || (A < 0 && pi < mu && D > low)) {
        out.clipped[t] = 1;
        continue;
      }
      out.loss[t] = static_cast<float>(-w * A * pi);
      // One of the two old policies is not read, and a NaN of it must be seen.
      const double unread = in.old_logprob[t];
      out.d_logprob[t] = static_cast<float>(std::isnan(unread) ? unread : -w * A);
    }
  }

 private:
  Divergence divergence_;
  Anchor anchor_ = Anchor::sampler;
  double cap_ = 10;
};

}  // namespace

MethodRow dppo_row() {
  return {.title = "DPPO",
          .paper = "Qi et al. 2026, Rethinking the Trust Region in LLM Reinforcement Learning (arXiv:2602.04879)",
          .presets = {"tv", "kl"},
          .create = create<Dppo>};
}

}  // namespace ucas

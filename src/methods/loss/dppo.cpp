// DPPO: PPO's trust region by a divergence instead of a ratio. A ratio of 2 is nothing for a token of probability 1e-5
// and everything for one of 0.4; what bounds the policy's change is how far its distribution has moved. Of that, each
// token shows a lower bound: the divergence of the pair (this token, any other) between the sampler mu and the policy
// pi (the article's binary form),
//   TV  D_t = |pi_t - mu_t|                    KL  D_t = mu_t ln(mu_t / pi_t) + (1 - mu_t) ln((1 - mu_t) / (1 - pi_t))
// or, closer, that of the K tokens that mu finds likeliest and all others as one more (its top-K form, top_k = K),
//   TV  D_t = 1/2 sum_c |pi_c - mu_c|          KL  D_t = sum_c mu_c ln(mu_c / pi_c),   c = v_1 .. v_K, rest
// A token is left without a gradient where it is out of the region and its advantage pushes it further out:
//   M_t = 0 if D_t > delta_high, pi_t > mu_t and A > 0, or D_t > delta_low, pi_t < mu_t and A < 0;   else 1
//   loss_t = -sg(min(pi_t / mu_t, cap)) M_t A lp_t,   mean over all tokens, masked ones included
//
//   preset   D   top_k  anchor   delta (both)   cap
//   tv       TV  0      sampler  0.15           10
//   kl       KL  0      sampler  0.05           10
//   topk_tv  TV  20     old      0.15           10
//   topk_kl  KL  20     old      0.05           10
// delta_low and delta_high are objective.clip_low and clip_high. mu is the sampler's log-prob, as the article insists
// (anchor = "old": the trainer's of before the update, its ablation "recompute"). The top-K forms have "old" alone: a
// sampler notes the token it drew, not the K likeliest, which the trainer reads before the first update instead. Where
// the program samples itself on a CPU the two distributions are the same bits. The advantage is GRPO's.
// Departure: the released binary KL adds 1e-8 to both 1 - mu and 1 - pi; here it is exact, and infinite at pi = 1.
// Read for this: the authors' code (sail-sg/Stable-RL: core_algos.py, actor/utils.py) and abstract; TRL's former DPPO
// trainer, which has the article's deltas and K (its cap is 20).
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

enum class Anchor { sampler, old };

class Dppo final : public GroupRelative {
 public:
  explicit Dppo(std::string_view preset)
      : divergence_(preset.ends_with("kl") ? Divergence::kl : Divergence::tv),
        top_k_(preset.starts_with("topk") ? 20 : 0),
        anchor_(preset.starts_with("topk") ? Anchor::old : Anchor::sampler) {
    const double delta = divergence_ == Divergence::kl ? 0.05 : 0.15;
    objective_ = {.clip_low = delta, .clip_high = delta, .dual_clip = 0};
  }
  void fields(Fields& f) override {
    f.choice("divergence", divergence_, {"tv", "kl"},
             "divergence of the trust region: total variation, or KL, over the classes that top_k sets");
    f.field("top_k", top_k_, Range{0, 1000},
            "classes of the divergence: 0 = this token and any other; K = the K most probable tokens before the update "
            "and all others");
    f.choice("anchor", anchor_, {"sampler", "old"},
             "anchor of trust region and weight: rollout log-probs of the sampler, or old log-probs of the trainer");
    f.field("cap", cap_, Range{1e-6, 1e6}, "maximum importance weight pi / mu");
    GroupRelative::fields(f);
  }
  void validate() const override {
    if (top_k_ == 0 || anchor_ == Anchor::old) return;
    throw Error(ErrorKind::config,
                str("method.top_k = ", top_k_,
                    " with method.anchor = \"sampler\": a sampler notes the token it drew, "
                    "not the likeliest ones, which the trainer reads before the update; set method.anchor = "
                    "\"old\", or method.top_k = 0"));
  }
  Needs needs() const override {
    Needs needs;
    if (top_k_ > 0) needs.divergence = {divergence_, top_k_};
    return needs;
  }
  std::vector<Equation> equations() const override {
    const bool tv = divergence_ == Divergence::tv;
    return {equation("A"),
            {"divergence",
             top_k_ > 0 ? str(tv ? "D_t = 1/2 sum_c |pi_c - mu_c|" : "D_t = sum_c mu_c ln(mu_c / pi_c)",
                              ",   c = v_1 .. v_", top_k_, ", rest")
             : tv ? "D_t = |pi_t - mu_t|"
                  : "D_t = mu_t ln(mu_t / pi_t) + (1 - mu_t) ln((1 - mu_t) / (1 - pi_t))",
             str(tv ? "total variation" : "KL",
                 top_k_ > 0 ? str(" of the ", top_k_, " tokens that mu finds likeliest and all others as one")
                            : " of the pair (this token, any other)",
                 ", between the ", anchor_ == Anchor::sampler ? "sampler mu" : "policy of before the update, mu,",
                 " and the policy pi")},
            {"mask", "M_t = 0 where D_t > clip_high, pi_t > mu_t and A > 0, or D_t > clip_low, pi_t < mu_t and A < 0",
             "a token that has left the trust region is not pushed further out; back into it, it may"},
            {"objective", str("loss_t = -sg(min(pi_t / mu_t, ", cap_, ")) M_t A lp_t"),
             "inside the region the policy gradient, weighted for the difference of the two policies; rare tokens may "
             "change by large factors"}};
  }

  void token_loss(const LossInput& in, LossOutput& out) const override {
    const auto anchor = anchor_ == Anchor::old ? in.old_logprob : in.rollout_logprob;
    UCAS_CHECK(top_k_ == 0 || in.divergence.size() == in.logprob.size(), "each token needs its divergence");
    const double low = in.objective->clip_low, high = in.objective->clip_high;
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      const double A = in.advantage[t], pi = in.logprob[t], mu = anchor[t];
      if (A == 0) continue;
      const double ratio = ratio_of(pi, mu).value, w = ratio > cap_ ? cap_ : ratio;
      const double D = top_k_ > 0 ? in.divergence[t] : token_divergence(divergence_, mu, pi);
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
  int64_t top_k_;
  Anchor anchor_;
  double cap_ = 10;
};

}  // namespace

MethodRow dppo_row() {
  return {.title = "DPPO",
          .paper = "Qi et al. 2026, Rethinking the Trust Region in LLM Reinforcement Learning (arXiv:2602.04879)",
          .presets = {"tv", "kl", "topk_tv", "topk_kl"},
          .create = create<Dppo>};
}

}  // namespace ucas

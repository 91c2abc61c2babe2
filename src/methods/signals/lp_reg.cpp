// Lp-Reg: the least likely tokens of wrong responses are where exploration dies. Those of them that min-p keeps are
// drawn to their probability under the min-p distribution, which is larger, in place of the clip. With pi_old the
// policy of before the step's first update:
//   V_t      the tokens of pi_old(v) >= min_p max_v pi_old(v)
//   q_t      pi_old(o_t) / sum_{v in V_t} pi_old(v) for o_t in V_t; 0 for others, which are never drawn
//   L        of the n tokens with A < 0 the k = max(1, int(share_wrong n)) of smallest ln pi_theta, none where k = 1;
//            and as many by share_right of those with A > 0
//   loss_t   -A rho + coef (q / pi_theta - ln(q / pi_theta) - 1)   for t in L with pi_theta(o_t) < q_t
//            the clipped ratio loss without dual clip for others, whose ratio may go from 0 to 10
// The gradient runs through ln pi_theta(o_t) alone: q is of the old policy, a constant.
//
//   preset    scope of L
//   paper     mini-batch
//   released  micro-batch, as the authors' code selects
// Read for this: the authors' code (CarlanLark/Lp-Reg-dev 33b27e2: compute_policy_loss_lp_reg in core_algos.py,
// apply_min_p and update_policy in dp_actor.py, compute_minp_log_prob in fsdp_workers.py, the scripts of Qwen3-14B and
// Qwen2.5-32B), whose scripts set minp_old_log_prob, and so pi_old. share_wrong is the 0.01 of those of Qwen3-14B;
// those of Qwen2.5-32B have 0.005. Of the article (arXiv:2510.03222) the abstract and the beginning could be read, its
// equations not.
// Departure: the released cut compares probabilities at temperature 1, whatever the sampler's; here it compares pi_old,
// which is the same at temperature 1, the scripts' setting. Not here: its fixed threshold, targets of the reference or
// of the policy at each update, and the softer cut, all off in the scripts.
#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/kl.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

class LpReg final : public GroupRelative {
 public:
  // The released scripts: a ratio of 0 to 10, no dual clip, token mean, all groups.
  explicit LpReg(std::string_view preset) : scope_(preset == "released" ? Scope::micro : Scope::mini) {
    objective_ = {.clip_low = 1, .clip_high = 9, .dual_clip = 0};
  }
  void fields(Fields& f) override {
    f.field("min_p", min_p_, Range{1e-6, 1},
            "minimum old probability of a protected token, as a fraction of the most probable token's");
    f.field("share_wrong", share_wrong_, Range{0, 1},
            "fraction of the tokens of negative advantage, the least likely ones, under the KL; fewer than two = none");
    f.field("share_right", share_right_, Range{0, 1},
            "fraction of the tokens of positive advantage, the least likely ones, under the KL; fewer than two = none");
    f.field("coef", coef_, Range{0, 1e6}, "weight of the KL to the min-p distribution");
    scope_field(f, scope_);
    GroupRelative::fields(f);
  }
  Needs needs() const override {
    Needs needs;
    needs.selection = Selection{scope_};
    needs.min_p = min_p_;
    return needs;
  }
  std::vector<Equation> equations() const override {
    const bool right = share_right_ > 0;
    return {
        equation("A"),
        {"target", str("q_t = pi_old(o_t) / sum_v pi_old(v), over the v of pi_old(v) >= ", min_p_, " max pi_old"),
         "what the token's probability is where presumed noise is cut away; 0 if the token is cut away itself"},
        {"rare tokens",
         str("L = the int(", share_wrong_, " n) least likely of the n tokens with A < 0",
             right ? str(", the int(", share_right_, " n) of those with A > 0") : "", ", in the ", scope_words(scope_)),
         "tokens that an update is about to extinguish"},
        {"objective", str("loss_t = -A rho + ", coef_, " (q / pi - ln(q / pi) - 1) in L where pi < q"),
         "rare tokens that are no noise are held near q; GRPO's clipped ratio otherwise"}};
  }

  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    const std::vector<TokenAt> tokens = valid_tokens(in);
    mark_rare(in, tokens, -1, share_wrong_, mark);
    mark_rare(in, tokens, +1, share_right_, mark);
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    clipped_ratio_loss(in, out);
    UCAS_CHECK(in.min_p_logprob.size() == in.logprob.size(), "each token needs its log-prob under min-p");
    for (size_t t = 0; t < in.mark.size(); ++t) {
      const double lp = in.logprob[t], q = in.min_p_logprob[t], A = in.advantage[t];
      if (in.mark[t] == 0 || A == 0 || lp >= q) continue;  // written so that a NaN goes on
      const Ratio rho = ratio_of(lp, in.old_logprob[t]);
      const KlTerm kl = kl_term(KlEstimator::k3, lp, q);
      out.loss[t] = static_cast<float>(-A * rho.value + coef_ * kl.value);
      out.d_logprob[t] = static_cast<float>(-A * rho.derivative + coef_ * kl.d_logprob);
      out.clipped[t] = 0;
    }
  }

 private:
  // Of the tokens whose advantage has that sign.
  static void mark_rare(const LossInput& in, std::span<const TokenAt> all, int sign, double share,
                        std::span<uint8_t> mark) {
    std::vector<TokenAt> tokens;
    std::vector<double> rarity;
    for (const TokenAt& x : all) {
      if (!(sign * in.advantage[x.index] > 0)) continue;
      tokens.push_back(x);
      rarity.push_back(-in.logprob[x.index]);
    }
    const auto k = static_cast<size_t>(share * static_cast<double>(tokens.size()));
    if (k < 2) return;  // as released
    for (int64_t index : largest(in, tokens, rarity, k)) mark[index] = 1;
  }

  double min_p_ = 0.02, share_wrong_ = 0.01, share_right_ = 0, coef_ = 1;
  Scope scope_;
};

}  // namespace

MethodRow lp_reg_row() {
  return {.title = "Lp-Reg",
          .paper =
              "Huang et al. 2025, Low-probability Tokens Sustain Exploration in Reinforcement Learning with Verifiable "
              "Reward (arXiv:2510.03222)",
          .presets = {"paper", "released"},
          .create = create<LpReg>};
}

}  // namespace ucas

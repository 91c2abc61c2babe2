// Lp-Reg: the least likely tokens of wrong responses are where exploration dies. Those of them that min-p keeps are
// pulled to their probability under the min-p distribution, which is larger. With pi_old the policy
// before the step's first update:
//   V_t      the tokens of pi_old(v) >= min_p max_v pi_old(v)
//   q_t      pi_old(o_t) / sum_{v in V_t} pi_old(v) for o_t in V_t; 0 for others, which are never sampled
//   loss_t   -A min(rho, 10) + coef (q / pi_theta - ln(q / pi_theta) - 1)   for t in L
//            the clipped ratio loss for others, whose ratio may go from 0 to 10
// The gradient runs through ln pi_theta(o_t) alone: q is of the old policy, a constant.
//
//   preset    L                                                        scope        ratios above 10 with A < 0
//   paper     A < 0, q > 0, ln pi_theta below the share-quantile       mini-batch   without gradient
//             of all tokens
//   released  A < 0, pi_theta < q, among the int(share n) least        micro-batch  with it
//             likely of the n tokens with A < 0, where these are two
//             or more
// Read for this: the article (arXiv:2510.03222v2, Eq. 5 and 6, by a reader's notes) and the authors' code
// (CarlanLark/Lp-Reg-dev 33b27e2: compute_policy_loss_lp_reg in core_algos.py, apply_min_p and update_policy in
// dp_actor.py, compute_minp_log_prob in fsdp_workers.py, the scripts of Qwen3-14B and Qwen2.5-32B), whose scripts set
// minp_old_log_prob, and so pi_old; on-policy that is the article's current policy. The share is the 0.01 of those of
// Qwen3-14B; those of Qwen2.5-32B have 0.005.
// Departure: the released cut compares probabilities at temperature 1, whatever the sampler's; here it compares pi_old,
// which is the same at temperature 1, the scripts' setting. Not here: its fixed threshold, targets of the reference or
// of the policy at each update, the softer cut, and tokens with A > 0, all off in the scripts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/kl.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

// ln q_t: the token's log-prob among those of p >= min_p max p, renormalised; -inf where it is none of them.
TokenSignal min_p_logprob(double min_p) {
  return {.key = "min_p_logprob",
          .words = "the log-prob of every token under min-p",
          .reads = {.share = min_p},
          .compute = [min_p](const LogitRow& row) {
            double largest = -std::numeric_limits<double>::infinity(), sum = 0;
            for (const LikelyToken& v : row.likely) largest = std::max(largest, static_cast<double>(v.z));
            if (row.z < largest + std::log(min_p)) return -std::numeric_limits<double>::infinity();
            for (const LikelyToken& v : row.likely) sum += std::exp(v.z - largest);
            return row.z - largest - std::log(sum);
          }};
}

class LpReg final : public GroupRelative {
 public:
  // A ratio of 0 to 10, token mean, all groups. The article clips it for both signs, as a dual clip of 10 does.
  explicit LpReg(std::string_view preset)
      : released_(preset == "released"), scope_(released_ ? Scope::micro : Scope::mini) {
    objective_ = {.clip_low = 1, .clip_high = 9, .dual_clip = released_ ? 0.0 : 10.0};
  }
  void fields(Fields& f) override {
    f.field("min_p", min_p_, Range{1e-6, 1},
            "minimum old probability of a protected token, as a fraction of the most probable token's");
    f.field("share_wrong", share_wrong_, Range{0, 1},
            "fraction of the tokens, the least likely ones, of which wrong ones are under the KL: of all tokens, or of "
            "the wrong ones alone (released)");
    f.field("coef", coef_, Range{0, 1e6}, "weight of the KL to the min-p distribution");
    scope_field(f, scope_);
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.signals = {min_p_logprob(min_p_)}, .selection = Selection{scope_}}; }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"target", str("q_t = pi_old(o_t) / sum_v pi_old(v), over the v of pi_old(v) >= ", min_p_, " max pi_old"),
             "what the token's probability is where presumed noise is cut away; 0 if the token is cut away itself"},
            {"rare tokens",
             released_ ? str("L = the int(", share_wrong_,
                             " n) least likely of the n tokens with A < 0, where pi < q, in the ", scope_words(scope_))
                       : str("L = tokens with A < 0, q > 0 and pi below the ", share_wrong_,
                             "-quantile of all, in the ", scope_words(scope_)),
             "tokens that an update is about to extinguish"},
            {"objective", str("loss_t = -A rho + ", coef_, " (q / pi - ln(q / pi) - 1) in L"),
             "rare tokens that are no noise are held near q; GRPO's clipped ratio otherwise"}};
  }

  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    std::vector<TokenAt> wrong;
    std::vector<double> all, rarity;
    for (const TokenAt& x : valid_tokens(in)) {
      all.push_back(in.logprob[x.index]);
      if (!(in.advantage[x.index] < 0)) continue;
      wrong.push_back(x);
      rarity.push_back(-all.back());
    }
    if (!released_) {
      const double below = all.empty() ? 0 : quantile(std::move(all), share_wrong_);
      for (const TokenAt& x : wrong) mark[x.index] = in.logprob[x.index] < below;
      return;
    }
    const auto k = static_cast<size_t>(share_wrong_ * static_cast<double>(wrong.size()));
    if (k < 2) return;  // as released
    for (int64_t index : largest(in, wrong, rarity, k)) mark[index] = 1;
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    clipped_ratio_loss(in, out);
    const std::span under_min_p = in.signal("min_p_logprob");
    const double most = in.objective->dual_clip;
    for (size_t t = 0; t < in.mark.size(); ++t) {
      const double lp = in.logprob[t], q = under_min_p[t], A = in.advantage[t];
      // Written so that a NaN goes on.
      if (in.mark[t] == 0 || A == 0 || (released_ ? lp >= q : std::exp(q) <= 0)) continue;
      const Ratio rho = ratio_of(lp, in.old_logprob[t]);
      const KlTerm kl = kl_term(KlEstimator::k3, lp, q);
      const bool held = most > 0 && rho.value > most;
      out.loss[t] = static_cast<float>(-A * (held ? most : rho.value) + coef_ * kl.value);
      out.d_logprob[t] = static_cast<float>((held ? 0 : -A * rho.derivative) + coef_ * kl.d_logprob);
      out.clipped[t] = held ? 2 : 0;
    }
  }

 private:
  bool released_;
  double min_p_ = 0.02, share_wrong_ = 0.01, coef_ = 1;
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

// SimKO: updates pile probability onto one token of each place. At places of high entropy a right response therefore
// raises the likeliest tokens along with its own, and a wrong one is punished harder for the likeliest token. With h_i
// the tau-quantile of the entropies of response i, and v_1 .. v_K the tokens that pi_theta finds likeliest at t:
//   w_t      1 where H_t > h_i, 0 elsewhere
//   A > 0    the gradient of the ratio rho_t is rho_t ((1 - alpha w_t) grad ln pi(o_t)
//            + alpha w_t / K sum_k grad ln pi(v_k)); its value is rho_t, which is what the clip sees
//   A < 0    the loss of a token with w_t = 1 that is the likeliest of its place is multiplied by `penalty`
// The rest is GRPO: the clipped ratio without dual clip, all responses, mean over tokens. Entropies, K tokens and
// likeliest token are of the policy being updated and constants.
//
// Read for this: the authors' code (CLR-Lab/SimKO 306f4ff: compute_policy_loss_simko in core_algos.py,
// _forward_micro_batch and update_policy in dp_actor.py, the scripts of Qwen2.5-Math-7B and Llama-3.2-3B: K 3, tau 0.8,
// alpha 0.01; the penalty of 1.1 is written into the code). Of the article (arXiv:2510.14807) the abstract and
// beginning could be read, its equations not. Departures: the released ratio is (1 - alpha w) rho + alpha w / K sum_k
// rho' / (D_k' + 1e-8) D_k, D_k the ratio of the k-th likeliest token's probability to that of the old policy's k-th
// likeliest, ' a constant. But for the 1e-8 every term is rho, and its gradient rho grad ln pi(v_k): the old policy's
// likeliest tokens cancel, and are not read here. It smooths where the score is 1 and punishes where the sum of the
// advantages is negative; here the advantage's sign says both, which is the same for rewards of 0 and 1. Its entropy
// bonus has no gradient: it detaches the entropy.
#include <algorithm>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

// ln pi_theta of the `count` likeliest tokens, in the mean: all of them share its gradient alike.
TokenSignal likely_logprob(int64_t count) {
  return {.key = "likely",
          .words = "the mean log-prob of the likeliest tokens",
          .reads = {.count = count},
          .compute =
              [](const LogitRow& row) {
                double sum = 0;
                for (const LikelyToken& token : row.likely) sum += token.z;
                return sum / static_cast<double>(row.likely.size()) - row.lse;
              },
          .derivatives = [](const LogitRow& row,
                            std::span<double> d) { std::ranges::fill(d, 1 / static_cast<double>(row.likely.size())); }};
}

class SimKo final : public GroupRelative {
 public:
  explicit SimKo(std::string_view) { objective_ = {.dual_clip = 0}; }
  void fields(Fields& f) override {
    f.field("top_k", top_k_, Range{1, 1000},
            "number of most probable tokens that right responses raise along with the sampled ones");
    f.field("alpha", alpha_, Range{0, 1}, "fraction of a token's gradient that the most probable tokens get");
    f.field("tau", tau_, Range{0, 1},
            "quantile of a response's entropies above which tokens are smoothed or punished harder");
    f.field("penalty", penalty_, Range{1, 100},
            "factor on the loss of most probable tokens of negative advantage and high entropy");
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.current = {signals::margin(), likely_logprob(top_k_)}}; }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"threshold", str("w_t = 1 where H_t > the ", tau_, "-quantile of the response's entropies, else 0"),
             "the places where the response could have gone on otherwise"},
            {"right",
             str("grad rho_t = rho_t ((1 - ", alpha_, " w_t) grad ln pi(o_t) + ", alpha_, " w_t / ", top_k_,
                 " sum_k grad ln pi(v_k)), v_1 .. v_", top_k_, " the likeliest tokens"),
             "a right response raises the likeliest alternatives, too"},
            {"wrong", str("loss_t times ", penalty_, " where w_t = 1 and o_t is the likeliest token"),
             "a wrong response is punished harder for what the policy prefers"},
            {"objective", "loss_t = max(-A rho, -A clip(rho))", "GRPO otherwise"}};
  }

  bool whole_responses() const override { return true; }  // the quantile is of a response
  void token_loss(const LossInput& in, LossOutput& out) const override {
    clipped_ratio_loss(in, out);
    const std::span margin = in.signal("margin");
    const std::span d_likely = out.d_signal("likely");
    for (const Sequence& s : in.sequences) {
      if (s.length == 0) continue;
      const std::span H = in.entropy.subspan(s.first, s.length);
      const double h = quantile({H.begin(), H.end()}, tau_);
      for (int64_t t = s.first; t < s.first + s.length; ++t) {
        if (!(in.entropy[t] > h)) continue;  // a NaN reaches the loss by the token's log-prob
        if (in.advantage[t] > 0) {
          const double d = out.d_logprob[t];
          out.d_logprob[t] = static_cast<float>((1 - alpha_) * d);
          d_likely[t] = static_cast<float>(alpha_ * d);
        } else if (margin[t] == 0) {
          out.loss[t] = static_cast<float>(penalty_ * out.loss[t]);
          out.d_logprob[t] = static_cast<float>(penalty_ * out.d_logprob[t]);
        }
      }
    }
  }

 private:
  int64_t top_k_ = 3;
  double alpha_ = 0.01, tau_ = 0.8, penalty_ = 1.1;
};

}  // namespace

MethodRow simko_row() {
  return {.title = "SimKO",
          .paper = "Peng et al. 2025, SimKO: Simple Pass@K Policy Optimization (arXiv:2510.14807)",
          .presets = {"released"},
          .create = create<SimKo>};
}

}  // namespace ucas

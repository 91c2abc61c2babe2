// KL-Cov: the tokens whose log-prob and advantage vary together most drive the policy's entropy down; each update holds
// them back with a penalty on how far they have moved. No ratio clip anywhere:
//   cov_t = (A_t - mean A)(lp_t - mean lp), and K = the max(1, ratio n) tokens with the largest
//   loss_t = -A r + [t in K] coef |lp - old|
// The article writes KL(pi_old || pi) for the penalty; this is the released code's estimate of it. Its gradient is
// coef sign(lp - old), so nothing happens on the first, on-policy update.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

class KlCov final : public GroupRelative {
 public:
  // The release chooses within each micro-batch. The clip options have no effect; token mean, DAPO's data and dynamic
  // sampling as in its scripts.
  explicit KlCov(std::string_view preset) : scope_(preset == "released" ? Scope::micro : Scope::mini) {
    objective_ = {.dual_clip = 0, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("ratio", ratio_, Range{0, 1}, "fraction of the scope's tokens under the KL penalty, at least one token");
    f.field("coef", coef_, Range{0, 1e6}, "weight of the penalty |log-prob - old log-prob|");
    scope_field(f, scope_);
    GroupRelative::fields(f);
  }
  // The penalty looks at no advantage.
  Needs needs() const override { return {.selection = Selection{scope_}, .zero_advantages = true}; }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"covariance", str("cov_t = (A_t - mean A)(lp_t - mean lp), means over the ", scope_words(scope_)),
             "how much raising the token both raises the reward and sharpens the policy"},
            {"KL-Cov",
             str("loss_t = -A r + ", coef_, " |lp - old| on the max(1, ", ratio_,
                 " n) tokens of largest cov_t; -A r elsewhere, unclipped"),
             "tokens of high covariance are held near the old policy"}};
  }

  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    std::vector<TokenAt> tokens = valid_tokens(in);
    auto k = std::max<size_t>(1, static_cast<size_t>(ratio_ * static_cast<double>(tokens.size())));
    for (int64_t index : largest(in, tokens, covariances(in, tokens), k)) mark[index] = 1;
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    out.absolute_drift = true;  // as released
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      double A = in.advantage[t], moved = static_cast<double>(in.logprob[t]) - in.old_logprob[t];
      Ratio r = ratio_of(in.logprob[t], in.old_logprob[t]);
      double loss = A == 0 ? 0 : -A * r.value, derivative = A == 0 ? 0 : -A * r.derivative;
      if (!in.mark.empty() && in.mark[t] != 0) {
        loss += coef_ * std::fabs(moved);
        derivative += std::isnan(moved) ? moved : moved > 0 ? coef_ : moved < 0 ? -coef_ : 0;
      }
      out.loss[t] = static_cast<float>(loss);
      out.d_logprob[t] = static_cast<float>(derivative);
    }
  }

 private:
  double ratio_ = 2e-3;  // share of tokens held back: 2e-3 for 7B, 2e-4 for 32B
  double coef_ = 1;
  Scope scope_;
};

}  // namespace

MethodRow kl_cov_row() {
  return {.title = "KL-Cov",
          .paper =
              "Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models "
              "(arXiv:2505.22617)",
          .presets = {"paper", "released"},
          .create = create<KlCov>};
}

}  // namespace ucas

// Entropy advantage ("reasoning with exploration"): tokens at which the policy hesitates count more in right responses
// and are punished less in wrong ones.
//   psi_t = min(alpha H_t, |A_t| / kappa)      A'_t = A_t + psi_t       (H of the policy being updated, detached)
// kappa > 1, so the sign of A never changes, and A = 0 stays 0. Then DAPO's loss with A'.
// preset grpo: A is the group z-score, alpha 0.4. preset ppo: A = R - V whitened over the batch (GAE with gamma and
// lambda 1, with a critic), alpha 0.1.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/returns.h"
#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

constexpr Metric kPsiShare{.key = "entropy_adv/psi_share",
                           .unit = Unit::share,
                           .help =
                               "mean over trained tokens of `psi / abs(A)` from the old policy's entropy (0 where `A = "
                               "0`); at most `1 / kappa`"};

class EntropyAdv final : public GroupRelative {
 public:
  // DAPO's clip-higher and token mean in both; mixed groups matter only where the group is the baseline.
  explicit EntropyAdv(std::string_view preset) : by_critic_(preset == "ppo"), alpha_(by_critic_ ? 0.1 : 0.4) {
    objective_ = {.clip_high = 0.28, .dual_clip = 10, .keep_mixed_groups = !by_critic_};
  }
  void fields(Fields& f) override {
    f.field("alpha", alpha_, Range{0, 100}, "weight of the token entropy in the advantage bonus psi");
    f.field("kappa", kappa_, Range{1, 1e6}, "bound of the bonus psi: at most |A| / kappa");
    if (by_critic_) {
      f.section("critic", critic_);
    } else {
      GroupRelative::fields(f);
    }
  }
  Needs needs() const override {
    Needs needs;
    if (by_critic_) needs.critic = critic_;
    return needs;
  }
  std::vector<Equation> equations() const override {
    return {by_critic_ ? Equation{"GAE", "A_t = whiten(R - V_t)", "the reward less what the critic expected"}
                       : equation("A"),
            {"psi", str("psi_t = min(", alpha_, " H_t, |A_t| / ", kappa_, ")"),
             "a bonus for hesitation, never so large that it turns the sign"},
            {"A'", "A'_t = A_t + psi_t", "added to the advantage before the clipped loss; no gradient through H"}};
  }

  // psi of the old policy is recorded for the report; the loss takes that of the update.
  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    if (by_critic_) {
      std::vector<double> A = gae(batch, token_rewards(batch), 1, 1);
      whiten(batch, A);
      std::copy(A.begin(), A.end(), advantage.begin());
      recording.record_tokens("A", to_float(A));
    } else {
      GroupRelative::advantages(batch, advantage, recording);
    }
    if (batch.entropy.size() != advantage.size()) return;  // nothing to record
    std::vector<float> recorded(advantage.size());
    double share = 0, tokens = 0;
    for (const Response& o : batch.responses) {
      for (int64_t t = o.first; t < o.first + o.length; ++t) {
        recorded[t] = psi(advantage[t], batch.entropy[t]);
        if (!o.trained) continue;
        share += advantage[t] != 0 ? recorded[t] / std::fabs(advantage[t]) : 0;
        tokens += 1;
      }
    }
    recording.record_tokens("psi", std::move(recorded));
    recording.record(kPsiShare, share / std::max(1.0, tokens));
  }
  void returns(const Batch& batch, std::span<float> returns) const override {
    std::vector<double> R = token_rewards(batch);
    discount_backwards(batch, 1, R);
    std::copy(R.begin(), R.end(), returns.begin());
  }

  void token_loss(const LossInput& in, LossOutput& out) const override {
    std::vector<float> shaped(in.advantage.begin(), in.advantage.end());  // A'
    for (size_t t = 0; t < shaped.size(); ++t) shaped[t] += psi(shaped[t], in.entropy[t]);
    LossInput with_psi = in;
    with_psi.advantage = shaped;
    clipped_ratio_loss(with_psi, out);
  }

 private:
  float psi(double A, double H) const {
    return A == 0 ? 0 : static_cast<float>(std::min(alpha_ * H, std::fabs(A) / kappa_));
  }

  bool by_critic_;
  double alpha_, kappa_ = 2;
  CriticConfig critic_;
};

}  // namespace

MethodRow entropy_adv_row() {
  return {.title = "Entropy advantage",
          .paper = "Cheng et al. 2025, Reasoning with Exploration: An Entropy Perspective (arXiv:2506.14758)",
          .presets = {"grpo", "ppo"},
          .create = create<EntropyAdv>,
          .metrics = {&kPsiShare}};
}

}  // namespace ucas

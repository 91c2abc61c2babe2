// Intuitor: no labels, no verifier. The reward of a response is the policy's own self-certainty, the mean over its
// tokens of KL(U || p_t), U uniform over the vocabulary; from there on it is GRPO.
// KL(U || p) = C - ln V with C = logsumexp(z) - mean_v z, the confidence that every step records. The constant ln V
// cancels in the z-score, so C itself is used, as in the authors' code.
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class Intuitor final : public GroupRelative {
 public:
  // GRPO's loss with the article's KL loss.
  explicit Intuitor(std::string_view preset) {
    objective_ = {.dual_clip = 0, .aggregation = Aggregation::seq_mean_token_mean, .kl_coeff = 0.005};
    if (preset != "verl") return;
    objective_.dual_clip = 3;
    objective_.aggregation = Aggregation::token_mean;
  }
  Needs needs() const override { return {.labels = false, .signals = {signals::confidence()}}; }
  std::vector<Equation> equations() const override {
    return {{"reward", "u_i = mean_t KL(U || p_t) = mean_t C_it - ln V",
             "the reward is how far the policy is from uniform at every step; no answer is looked at"},
            equation("advantage", "u")};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    std::vector<float> recorded;
    auto A = [&](std::span<const Response> group) {
      std::vector<double> u;
      for (const Response& o_i : group) {
        u.push_back(mean(Batch::tokens(batch.confidence, o_i)) - o_i.kl_penalty);
        recorded.push_back(static_cast<float>(u.back()));
      }
      // An empty response has no certainty to compare.
      if (u.size() == 1 && group_.group_of_one == GroupOfOne::reward) return std::vector{u[0] / (1 + group_.eps)};
      return zscore(u, non_empty(group), group_.eps, group_.ddof);
    };
    broadcast(batch, A, advantage, recording);
    recording.record_responses("u", std::move(recorded));
  }
};

}  // namespace

MethodRow intuitor_row() {
  return {
      .title = "Intuitor",
      .paper =
          "Zhao et al. 2025, Learning to Reason without External Rewards (arXiv:2505.19590); self-certainty: Kang et "
          "al. 2025 (arXiv:2502.18581)",
      .presets = {"paper", "verl"},
      .create = create<Intuitor>};
}

}  // namespace ucas

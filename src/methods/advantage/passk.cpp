// Pass@k training: a response is worth what it does for the chance that one of k responses to the prompt is right. The
// N responses of a prompt make C(N, k) sets of k; a set's reward is 1 if any of its k is right, its advantage is that
// z-scored among the sets, and a response's is the mean over the sets that it is in. With N_neg wrong responses:
//   R       = 1 - C(N_neg, k) / C(N, k)                                      mean reward of a set
//   sigma   = sqrt(R (1 - R))                                                its deviation
//   A_right = (1 - R) / sigma                                                every set with it is rewarded
//   A_wrong = (1 - R - C(N_neg - 1, k - 1) / C(N - 1, k - 1)) / sigma
// 0 where all sets are rewarded (N_neg < k) or none is: an easy prompt teaches nothing more. k = 1 is GRPO, std over G.
//
// Right is what the verdict says, as pass@k counts it: shaping and KL in the reward change nothing here. The released
// code, which knows rewards of 0 and 1 alone, divides by sigma + 1e-6.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

constexpr Metric kPassKReward{.key = "passk/reward_mean",
                              .help = "mean over prompts of R, the share of sets of k responses that hold a right one"};
constexpr Metric kPassKSilent{
    .key = "passk/silent_share",
    .unit = Unit::share,
    .help = "share of prompts without a right or with fewer than k wrong responses: their advantages are 0"};

// C(wrong, k) / C(all, k): the chance that k of the responses are all wrong. As a product of ratios nothing overflows.
double chance_of_none(int64_t wrong, int64_t all, int64_t k) {
  double chance = 1;
  for (int64_t j = 0; j < k; ++j) {
    if (wrong <= j) return 0;
    chance *= static_cast<double>(wrong - j) / static_cast<double>(all - j);
  }
  return chance;
}

class PassK final : public Method {
 public:
  // The loss is DAPO's, as the article trains it; its mean is that of the preset `paper` of dapo.
  explicit PassK(std::string_view) {
    objective_ = {
        .clip_high = 0.28, .dual_clip = 10, .aggregation = Aggregation::group_token_mean, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("k", k_, Range{1, 1 << 20}, "responses per set, the k of pass@k; below rollout.n");
  }
  // With N = k there is one set and no spread.
  Needs needs() const override { return {.responses = k_ == 1 ? 2 : k_ + 1}; }
  std::vector<Equation> equations() const override {
    return {
        {"sets of k", str("R = 1 - C(N_neg, ", k_, ") / C(N, ", k_, "), sigma = sqrt(R (1 - R))"),
         "share of the sets of k that hold a right response, by the verdict, and its deviation; N_neg of N are wrong"},
        {"right", "A_i = (1 - R) / sigma", "the rarer right answers are, the more each counts"},
        {"wrong", str("A_i = (1 - R - C(N_neg - 1, ", k_ - 1, ") / C(N - 1, ", k_ - 1, ")) / sigma"),
         str("0 for all where fewer than ", k_, " responses are wrong, or none is right")}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    double equal = 0, reward = 0;
    for (const Group& group : batch.groups) {
      const double none = chance_of_none(wrong_of(batch.of(group)), group.count, k_);
      equal += none == 0 || none == 1;
      reward += 1 - none;
    }
    const double groups = std::max<double>(1, static_cast<double>(batch.groups.size()));
    recording.record(kPassKReward, reward / groups);
    recording.record(kPassKSilent, equal / groups);
    broadcast(batch, [&](std::span<const Response> o) { return advantages_of(o); }, advantage, recording);
  }

 private:
  static int64_t wrong_of(std::span<const Response> o) {
    return std::ranges::count_if(o, [](const Response& o_i) { return !is_right(o_i); });
  }

  std::vector<double> advantages_of(std::span<const Response> o) const {
    const auto N = static_cast<int64_t>(o.size()), N_neg = wrong_of(o);
    std::vector<double> A(o.size(), 0.0);
    const double none = chance_of_none(N_neg, N, k_);  // 1 - R
    const double sigma = std::sqrt(none * (1 - none));
    if (sigma == 0) return A;
    const double beside_wrong = chance_of_none(N_neg - 1, N - 1, k_ - 1);
    for (size_t i = 0; i < o.size(); ++i) A[i] = (is_right(o[i]) ? none : none - beside_wrong) / sigma;
    return A;
  }

  int64_t k_ = 4;
};

}  // namespace

MethodRow passk_row() {
  return {.title = "Pass@k training",
          .paper =
              "Chen et al. 2025, Pass@k Training for Adaptively Balancing Exploration and Exploitation of Large "
              "Reasoning Models (arXiv:2508.10751)",
          .presets = {"paper"},
          .create = create<PassK>,
          .metrics = {&kPassKReward, &kPassKSilent}};
}

}  // namespace ucas

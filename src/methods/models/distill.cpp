// On-policy distillation: the policy samples, a teacher of the same vocabulary says how likely it would have sampled
// every token, and each token's advantage is minus the gap, one sample of the reverse KL of the two next-token
// distributions:
//   k_it = ln pi_old(o_it) - ln pi_T(o_it),   E k_it = KL(pi || pi_T) at this prefix
//   A_it = -kl_weight k_it + reward_weight A_i,   A_i the z-score of the reward in the group
// A token's reward is its own alone: no return, no discount, no baseline over the batch. Where the teacher is sure of
// another token than the one sampled, it is pushed down at once, however the response ends; that needs no right
// answers, and one response to a prompt is enough.
//
//   preset   kl_weight  reward_weight
//   kl       1          0               distillation alone
//   reward   1          1               the verdict added (ours)
// Both models are read at the sampling temperature. Departures: the article's loss is the bare ratio pi / pi_old; here
// it is clipped as in PPO (0.2, dual clip 3, token mean), which on the first update is the same gradient. The whole
// distribution's KL (GKD, TRL's distillation trainers) would need both models' logits at every token: not here.
// Read for this: summaries of the article (a page of Thinking Machines, October 2025), TRL's paper index and
// distillation trainers. The page itself was not at hand.
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

constexpr Metric kReverseKl{
    .key = "distill/reverse_kl",
    .unit = Unit::nats,
    .help = "mean over the step's tokens of ln pi_old - ln pi_T, which estimates KL(policy, teacher)"};

class Distill final : public GroupRelative {
 public:
  explicit Distill(std::string_view preset) : reward_weight_(preset == "reward" ? 1 : 0) {}
  void fields(Fields& f) override {
    f.field("teacher", teacher_, OptionNames::checkpoint,
            "checkpoint of the teacher; teacher and policy must share a tokenizer");
    f.field("kl_weight", kl_weight_, Range{0, 1000},
            "weight of the distillation term -(ln pi_old - ln pi_T), per token");
    f.field("reward_weight", reward_weight_, Range{0, 1000},
            "weight of the reward's z-score in the group; 0 = no reward");
    GroupRelative::fields(f);
  }
  void validate() const override {
    if (kl_weight_ > 0 || reward_weight_ > 0) return;
    throw Error(ErrorKind::config,
                "method.kl_weight = 0 and method.reward_weight = 0: every advantage would be 0; set one above 0");
  }
  Needs needs() const override { return {.labels = reward_weight_ > 0, .teacher = teacher_}; }
  std::vector<Equation> equations() const override {
    std::vector<Equation> list = {{"gap", "k_it = ln pi_old(o_it) - ln pi_T(o_it)",
                                   "one sample of the reverse KL between the policy and the teacher at this token"}};
    if (reward_weight_ > 0) list.push_back(equation("reward"));
    list.push_back({"advantage",
                    str("A_it = -", kl_weight_, " k_it", reward_weight_ > 0 ? str(" + ", reward_weight_, " A_i") : ""),
                    "a token that the teacher would not have sampled is pushed down, one that it likes better up; each "
                    "is scored alone"});
    return list;
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    GroupRelative::advantages(batch, advantage, recording);
    const std::vector<float>& teacher = batch.signal("teacher_logprob");
    std::vector<float> gap(advantage.size());
    std::vector<double> exact(advantage.size());
    for (size_t t = 0; t < advantage.size(); ++t) {
      const double k = static_cast<double>(batch.old_logprob[t]) - teacher[t];
      // A part of weight 0 is not read, so that nothing in it is either.
      const double shaped = kl_weight_ > 0 ? -kl_weight_ * k : 0;
      advantage[t] = static_cast<float>(shaped + (reward_weight_ > 0 ? reward_weight_ * advantage[t] : 0));
      gap[t] = static_cast<float>(k);
      exact[t] = k;
    }
    std::vector<double> gaps = batch.trained(exact);
    const double tokens = static_cast<double>(std::max<size_t>(1, gaps.size()));
    recording.record(kReverseKl, sorted_sum(std::move(gaps)) / tokens);
    recording.record_tokens("k", std::move(gap));
  }

 private:
  std::string teacher_;
  double kl_weight_ = 1, reward_weight_;
};

}  // namespace

MethodRow distill_row() {
  return {.title = "On-policy distillation",
          .paper =
              "Lu and Thinking Machines Lab 2025, On-Policy Distillation; after Agarwal et al. 2023, On-Policy "
              "Distillation of Language Models (arXiv:2306.13649)",
          .presets = {"kl", "reward"},
          .create = create<Distill>,
          .metrics = {&kReverseKl}};
}

}  // namespace ucas

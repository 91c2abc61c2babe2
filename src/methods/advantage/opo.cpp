// OPO, on-policy with the optimal baseline: of all baselines b of A_i = R_i - b the one of least gradient variance
// weighs each reward by the squared norm of its response's gradient. Where tokens' gradients are about orthogonal and
// of one size that norm grows with the length, and so
//   b = sum_i L_i R_i / sum_i L_i,   A_i = R_i - b,   L_i the tokens of a response, within the prompt's group
// No deviation, no KL, no entropy bonus. The other half of the method is exact on-policy training, one update a step of
// what the policy as it is has sampled: update.mini_batch_size = data.train_batch_size, update.epochs = 1, nothing from
// an earlier step. Other sizes are refused, but under the preset verl, which does not enforce them. Every ratio is then
// 1, and the loss, PPO's clip without a dual clip (verl's adds one of 3), is the policy gradient.
//
// Alone in its group: 0 by the formula; its reward in verl (group_of_one).
// Read for this: the article's abstract and summaries of its derivation, verl's page on OPO and its core_algos.py,
// where the authors put their implementation.
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

// R_i - b as sum_j L_j (R_i - R_j) / sum_j L_j: exactly 0 where all rewards are equal.
std::vector<double> against_weighted_mean(std::span<const Response> o) {
  std::vector<double> A(o.size(), 0.0), lengths;
  for (const Response& o_j : o) lengths.push_back(static_cast<double>(o_j.length));
  const double tokens = sorted_sum(lengths);
  if (tokens == 0) return A;
  for (size_t i = 0; i < o.size(); ++i) {
    std::vector<double> parts;
    for (const Response& o_j : o) {
      parts.push_back(static_cast<double>(o_j.length) * (static_cast<double>(o[i].reward) - o_j.reward));
    }
    A[i] = sorted_sum(std::move(parts)) / tokens;
  }
  return A;
}

class Opo final : public Method {
 public:
  explicit Opo(std::string_view preset)
      : group_of_one_(preset == "verl" ? GroupOfOne::reward : GroupOfOne::zero), on_policy_(preset != "verl") {
    objective_ = {.dual_clip = preset == "verl" ? 3.0 : 0.0};
  }
  void fields(Fields& f) override {
    f.choice("group_of_one", group_of_one_, {"reward", "zero"},
             "advantage of the only response to a prompt: the reward (verl), or zero");
  }
  Needs needs() const override { return {.on_policy = on_policy_}; }
  std::vector<Equation> equations() const override {
    return {
        {"baseline", "b = sum_i L_i R_i / sum_i L_i",
         "the group's mean reward, a response weighed by its length: the baseline of least variance where a "
         "gradient's squared norm grows with the length"},
        {"advantage", "A_i = R_i - b", "not divided by a deviation"},
        {"on-policy", on_policy_ ? "pi_old = pi_theta at every update" : "pi_old = pi_theta at a step's first update",
         on_policy_ ? "one update a step: update.mini_batch_size = data.train_batch_size, update.epochs = 1"
                    : "not asked for: with several updates a step this is OPO's baseline under PPO's clip"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    auto A = [&](std::span<const Response> o) {
      if (o.size() == 1 && group_of_one_ == GroupOfOne::reward) return std::vector<double>{o.front().reward};
      return against_weighted_mean(o);
    };
    broadcast(batch, A, advantage, recording);
  }

 private:
  GroupOfOne group_of_one_;
  bool on_policy_;
};

}  // namespace

MethodRow opo_row() {
  return {.title = "OPO",
          .paper = "Hao et al. 2025, On-Policy RL with Optimal Reward Baseline (arXiv:2505.23585)",
          .presets = {"paper", "verl"},
          .create = create<Opo>};
}

}  // namespace ucas

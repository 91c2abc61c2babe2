// MaxRL: the gradient of ln p, p the chance of a right answer, where reinforcement learning follows that of p:
//   ln p = -sum_{k >= 1} (1 - p)^k / k,   and so   grad ln p = sum_k (1/k) grad pass@k
// Of N responses, K of them right, the mean score (grad ln pi) of the right ones estimates that sum to its N-th term
// without bias. The mean score of all, 0 in expectation, is taken off where K > 0 (which costs the N-th term). Per
// response, with m = K / N:
//   A_right = (1 - m) / m,   A_wrong = -1,   that is A_i = (r_i - m) / m,   0 for all where K = 0
// GRPO divides by sqrt(m (1 - m)): here rare right answers count more still.
//
//   preset    divisor
//   paper     m
//   released  m + 1e-6
// Right is what the verdict says, whatever a reward of wrong answers is: with rewards of -1 and 1 a mean has no such
// meaning. The released code gives a prompt's only response its reward over 1e-6; here it is 0, as the formula says.
//
// The loss is PPO's clip as in the authors' scripts (0.2 on both sides, dual clip 3, token mean), which there meets one
// update a step: set update.mini_batch_size = data.train_batch_size for that.
// Read for this: the authors' page (zanette-labs.github.io/MaxRL) and code (tajwarfahim/maxrl: core_algos.py, scripts).
#include <algorithm>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

constexpr Metric kMaxRlSolved{
    .key = "maxrl/solved_share", .unit = Unit::share, .help = "share of prompts with at least one right response"};

class MaxRl final : public Method {
 public:
  explicit MaxRl(std::string_view preset) : eps_(preset == "released" ? 1e-6 : 0) {}
  void fields(Fields& f) override {
    f.field("eps", eps_, Range{0, 1}, "epsilon added to the accuracy of the group before division");
  }
  Needs needs() const override { return {.responses = 2}; }
  std::vector<Equation> equations() const override {
    const std::string divisor = eps_ == 0 ? std::string("m") : str("(m + ", eps_, ")");
    return {{"share", "m = |{i: o_i right}| / G", "the prompt's share of right responses, by the verdict"},
            {"right", str("A_i = (1 - m) / ", divisor), "the gradient of ln p: the rarer, the more each counts"},
            {"wrong", str("A_i = -m / ", divisor), "about -1 each; 0 for all where none is right, or all are"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    double solved = 0;
    auto A = [&](std::span<const Response> o) {
      const auto right = static_cast<double>(std::ranges::count_if(o, is_right));
      const double m = right / static_cast<double>(o.size());
      solved += right > 0;
      std::vector<double> of;
      for (const Response& o_i : o) of.push_back(right == 0 ? 0 : ((is_right(o_i) ? 1 : 0) - m) / (m + eps_));
      return of;
    };
    broadcast(batch, A, advantage, recording);
    const double groups = std::max<double>(1, static_cast<double>(batch.groups.size()));
    recording.record(kMaxRlSolved, solved / groups);
  }

 private:
  double eps_;
};

}  // namespace

MethodRow maxrl_row() {
  return {.title = "MaxRL",
          .paper = "Tajwar et al. 2026, Maximum Likelihood Reinforcement Learning (arXiv:2602.02710)",
          .presets = {"paper", "released"},
          .create = create<MaxRl>,
          .metrics = {&kMaxRlSolved}};
}

}  // namespace ucas

// REINFORCE++-baseline: the mean reward of the prompt's group is taken off first, as in Dr.GRPO, and the result is
// whitened over all tokens of the batch: the group gives the baseline, the batch the scale.
#include <algorithm>

#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/returns.h"

namespace ucas {

namespace {

// The loss is the default, verl's PPO: clip 0.2, dual clip 3, token mean.
class ReinforcePpBaseline final : public Method {
 public:
  explicit ReinforcePpBaseline(std::string_view) {}
  void fields(Fields& f) override {
    f.choice("group_of_one", group_of_one_, {"reward", "zero"},
             "advantage of the only response to a prompt, before whitening: the reward, or zero");
  }
  std::vector<Equation> equations() const override {
    return {{"baseline", "A_i = R_i - mean(R)", "a response's reward against those of the same prompt"},
            {"advantage", "A_t = (A_i - mean) / sqrt(var + 1e-8), over the trained tokens of the batch",
             "whitened over the whole step. A long response counts with each of its tokens, so mean is not 0"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    auto centred = [&](std::span<const Response> group) { return centered_rewards(group, group_of_one_); };
    broadcast(batch, centred, advantage, recording);
    std::vector<double> A(advantage.begin(), advantage.end());
    whiten(batch, A);
    std::copy(A.begin(), A.end(), advantage.begin());
  }

 private:
  GroupOfOne group_of_one_ = GroupOfOne::reward;
};

}  // namespace

MethodRow reinforce_pp_baseline_row() {
  return {
      .title = "REINFORCE++-baseline",
      .paper =
          "Hu et al. 2025, REINFORCE++: An Efficient RLHF Algorithm with Robustness to Both Prompt and Reward Models "
          "(arXiv:2501.03262)",
      .presets = {"verl"},
      .create = create<ReinforcePpBaseline>};
}

}  // namespace ucas

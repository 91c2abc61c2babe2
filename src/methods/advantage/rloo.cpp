// RLOO: REINFORCE, leave one out. The baseline of a response is the mean reward of the others to the same prompt, which
// is independent of it and so leaves the gradient unbiased. No deviation.
//
// Departure: the article treats a whole response as one action and takes one gradient step per batch; here, as in verl,
// the loss is PPO's clipped one per token, which is the same gradient on the first, on-policy update.
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

// A_i = R_i - mean_{j != i} R_j = (R_i - mean(R)) G / (G - 1)
std::vector<double> leave_one_out(std::span<const Response> group, GroupOfOne group_of_one) {
  std::vector<double> A = centered_rewards(group, group_of_one);
  if (A.size() == 1) return A;
  double G = static_cast<double>(A.size());
  for (double& a : A) a *= G / (G - 1);
  return A;
}

// The loss is the default, verl's PPO: clip 0.2, dual clip 3, token mean.
class Rloo final : public Method {
 public:
  explicit Rloo(std::string_view) {}
  void fields(Fields& f) override {
    f.choice("group_of_one", group_of_one_, {"reward", "zero"},
             "advantage of the only response to a prompt: the reward (verl), or zero (verl's vectorised form)");
  }
  std::vector<Equation> equations() const override {
    return {{"advantage", "A_i = R_i - mean_{j != i} R_j",
             "a response's reward against the mean of the others to the same prompt"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    auto A = [&](std::span<const Response> group) { return leave_one_out(group, group_of_one_); };
    broadcast(batch, A, advantage, recording);
  }

 private:
  GroupOfOne group_of_one_ = GroupOfOne::reward;
};

}  // namespace

MethodRow rloo_row() {
  return {.title = "RLOO",
          .paper =
              "Ahmadian et al. 2024, Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human "
              "Feedback in LLMs (arXiv:2402.14740)",
          .presets = {"verl"},
          .create = create<Rloo>};
}

}  // namespace ucas

// Negative-sample reinforcement: REINFORCE with rewards of 1 and -1 and no baseline, in its two halves. L_PSR is the
// part of the right responses, L_NSR that of the wrong ones, and W-REINFORCE weighs them:
//   L = lambda_pos L_PSR + lambda_neg L_NSR,  that is A_i = lambda_pos if right, -lambda_neg if wrong
//   w_reinforce: lambda = 0.1 and 1;  nsr: 0 and 1, wrong responses only;  psr: 1 and 0, right ones only
// The other half stays in the mean's denominator, with a loss of 0, as released. Right is what the verdict says.
//
// The loss is the released one, PPO's clip of the ratio at 0.2 on both sides (no dual clip, mean over all tokens, all
// groups), which on the first, on-policy update is REINFORCE's gradient. Departure: the release leaves its code base's
// entropy bonus of 0.001 on for all of its methods; here it is off (objective.entropy_coeff).
#include "base/error.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

class Nsr final : public Method {
 public:
  explicit Nsr(std::string_view preset) {
    if (preset == "nsr") lambda_pos_ = 0;
    if (preset == "psr") lambda_pos_ = 1, lambda_neg_ = 0;
    objective_ = {.dual_clip = 0};
  }
  void fields(Fields& f) override {
    f.field("lambda_pos", lambda_pos_, Range{0, 100},
            "weight lambda of right responses; 0 = wrong responses only (NSR)");
    f.field("lambda_neg", lambda_neg_, Range{0, 100}, "weight of wrong responses; 0 = right responses only (PSR)");
  }
  void validate() const override {
    if (lambda_pos_ > 0 || lambda_neg_ > 0) return;
    throw Error(ErrorKind::config,
                "method.lambda_pos = 0 and method.lambda_neg = 0: every advantage would be 0; set one above 0");
  }
  std::vector<Equation> equations() const override {
    return {{"advantage",
             str("A_i = ", lambda_pos_, " if right, ", lambda_neg_ == 0 ? "" : "-", lambda_neg_, " if wrong"),
             "the verdict itself, weighted: no baseline, so what the other responses are worth changes nothing"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    auto A = [&](std::span<const Response> o) {
      std::vector<double> of;
      for (const Response& o_i : o) of.push_back(is_right(o_i) ? lambda_pos_ : 0 - lambda_neg_);
      return of;
    };
    broadcast(batch, A, advantage, recording);
  }

 private:
  double lambda_pos_ = 0.1, lambda_neg_ = 1;
};

}  // namespace

MethodRow nsr_row() {
  return {.title = "W-REINFORCE (NSR)",
          .paper =
              "Zhu et al. 2025, The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning "
              "(arXiv:2506.01347)",
          .presets = {"w_reinforce", "nsr", "psr"},
          .create = create<Nsr>};
}

}  // namespace ucas

// GRPO: the advantage of every token is the z-score of its response's reward within the group (Eq. 3).
//
//   preset     eps    aggregation          dual clip  KL loss  alone
//   paper      1e-6   seq_mean_token_mean  -          -        its reward   the baseline of the UCAS paper
//   deepseek   1e-6   seq_mean_token_mean  -          0.04 k3  its reward   the DeepSeekMath article
//   verl       1e-6   token_mean           3          -        its reward
//   oat        1e-8   seq_mean_token_mean  -          -        0
//   trl        1e-4   token_mean           -          -        0
//
// The article leaves eps and the ddof of its deviation open; all code divides by G - 1.
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class Grpo final : public GroupRelative {
 public:
  explicit Grpo(std::string_view preset) {
    // Eq. 1: symmetric clip, mean over each response's tokens, then over responses; no dual clip.
    objective_ = {.dual_clip = 0, .aggregation = Aggregation::seq_mean_token_mean};
    if (preset == "deepseek") objective_.kl_coeff = 0.04;
    if (preset == "verl") objective_.dual_clip = 3;
    if (preset == "verl" || preset == "trl") objective_.aggregation = Aggregation::token_mean;
    if (preset == "oat") group_.eps = 1e-8;
    if (preset == "trl") group_.eps = 1e-4;
    if (preset == "oat" || preset == "trl") group_.group_of_one = GroupOfOne::zero;
  }
  std::vector<Equation> equations() const override { return {equation("Sec. 4.1.2")}; }
};

}  // namespace

MethodRow grpo_row() {
  return {.title = "GRPO",
          .paper = "Shao et al. 2024, DeepSeekMath: Pushing the Limits of Mathematical Reasoning (arXiv:2402.03300)",
          .presets = {"paper", "deepseek", "verl", "oat", "trl"},
          .create = create<Grpo>};
}

}  // namespace ucas

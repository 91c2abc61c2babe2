// DAPO: GRPO's advantages, and four changes around them: clip-higher, the token mean, dynamic sampling (all three are
// objective defaults here) and overlong shaping, which is part of the reward (reward.overlong_buffer).
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class Dapo final : public GroupRelative {
 public:
  // Clip 0.2 / 0.28 is the article's, the dual clip of 10 that of verl's recipe/dapo. The article's mean is over the
  // tokens of a prompt's responses, then over prompts; the recipe's over all tokens of the mini-batch.
  explicit Dapo(std::string_view preset) {
    bool released = preset == "released";
    objective_ = {.clip_high = 0.28,
                  .dual_clip = 10,
                  .aggregation = released ? Aggregation::token_mean : Aggregation::group_token_mean,
                  .keep_mixed_groups = true};
  }
  std::vector<Equation> equations() const override { return {equation("Eq. 9")}; }
};

}  // namespace

MethodRow dapo_row() {
  return {.title = "DAPO",
          .paper = "Yu et al. 2025, DAPO: An Open-Source LLM Reinforcement Learning System at Scale (arXiv:2503.14476)",
          .presets = {"paper", "released"},
          .create = create<Dapo>};
}

}  // namespace ucas

// LUSPO: GSPO without its bias against long responses. GSPO's loss is one number a response, so every token of a long
// one has a smaller share of it; here a response's loss is multiplied by its length:
//   s_i = exp(mean_t (lp_t - old_t)),   L = mean_i L_i max(-A s_i, -A clip(s_i, 1 - eps_low, 1 + eps_high))
// which is the sum over tokens where GSPO has the mean (seq_mean_token_sum), and gives every token the derivative -A
// s_i over the number of responses. The clip is the article's, 2e-3 and 2.5e-3.
//
// Departure: the mean is over the mini-batch's responses that have tokens; TRL counts empty ones too.
// Read for this: the article's abstract and TRL's grpo_trainer.py (loss_type "luspo") with its paper index, which has
// the article's values. The authors' code (murphy4122/LUSPO, on verl) was not at hand.
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"

namespace ucas {

namespace {

class Luspo final : public GroupRelative {
 public:
  explicit Luspo(std::string_view) {
    objective_ = {
        .clip_low = 2e-3, .clip_high = 2.5e-3, .dual_clip = 0, .aggregation = Aggregation::seq_mean_token_sum};
  }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"ratio", "s_i = exp(mean_t (lp_t - old_t))", "one ratio per response, with its length taken out"},
            {"objective", "loss_i = L_i max(-A s_i, -A clip(s_i, 1 - eps_low, 1 + eps_high))",
             "a response counts by its length, so that each token counts the same in long and in short ones"}};
  }
  void token_loss(const LossInput& in, LossOutput& out) const override { sequence_ratio_loss(in, out); }
  bool whole_responses() const override { return true; }
};

}  // namespace

MethodRow luspo_row() {
  return {
      .title = "LUSPO",
      .paper =
          "Liu et al. 2026, Length-Unbiased Sequence Policy Optimization: Revealing and Controlling Response Length "
          "Variation in RLVR (arXiv:2602.05261)",
      .presets = {"paper"},
      .create = create<Luspo>};
}

}  // namespace ucas

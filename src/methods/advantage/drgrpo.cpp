// Dr.GRPO ("GRPO done right"; Oat-Zero is the model trained with it): GRPO without its two biases. The advantage is not
// divided by the group's deviation, which favours too easy and too hard questions, and the loss not by the response's
// length, which favours long wrong answers; it is divided by a constant, the response limit.
//
//   preset  divisor of the loss           alone in its group
//   oat     responses times the constant  0               the article's code; also TRL's dr_grpo
//   verl    the constant                  its reward      larger by the number of responses in the mini-batch
// verl 0.9.1 divides as oat does, by the responses that have tokens; the preset is its older form.
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class DrGrpo final : public Method {
 public:
  // PPO's clip of 0.2 without dual clip (Oat). No KL, no entropy term.
  explicit DrGrpo(std::string_view preset) : group_of_one_(preset == "oat" ? GroupOfOne::zero : GroupOfOne::reward) {
    objective_ = {
        .dual_clip = 0,
        .aggregation = preset == "oat" ? Aggregation::row_mean_token_sum_norm : Aggregation::seq_mean_token_sum_norm};
  }
  void fields(Fields& f) override {
    f.choice("group_of_one", group_of_one_, {"reward", "zero"},
             "advantage of the only response to a prompt: the reward, or zero");
  }
  std::vector<Equation> equations() const override {
    return {{"Sec. 3.2, advantage", "A_i = R_i - mean(R)",
             "a response's reward against those of the same prompt, not divided by their deviation: hard and easy "
             "questions count for what they are"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    auto A = [&](std::span<const Response> group) { return centered_rewards(group, group_of_one_); };
    broadcast(batch, A, advantage, recording);
  }

 private:
  GroupOfOne group_of_one_;
};

}  // namespace

MethodRow drgrpo_row() {
  return {.title = "Dr.GRPO",
          .paper = "Liu et al. 2025, Understanding R1-Zero-Like Training: A Critical Perspective (arXiv:2503.20783)",
          .presets = {"oat", "verl"},
          .create = create<DrGrpo>};
}

}  // namespace ucas

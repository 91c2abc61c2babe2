// Dr.GRPO ("GRPO done right"; Oat-Zero is the model trained with it): GRPO without its two biases. The advantage is not
// divided by the group's deviation, which favours too easy and too hard questions, and the loss not by the response's
// length, which favours long wrong answers; it is divided by a constant, the response limit.
//
//   preset  divisor of the loss           alone in its group
//   oat     responses times the constant  0               the article's code; also TRL's dr_grpo
//   verl    the constant                  its reward      larger by the number of responses in the mini-batch
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class DrGrpo final : public Method {
 public:
  std::string title() const override { return "Dr.GRPO"; }
  std::string paper() const override {
    return "Liu et al. 2025, Understanding R1-Zero-Like Training: A Critical Perspective (arXiv:2503.20783)";
  }
  std::vector<std::string> presets() const override { return {"oat", "verl"}; }
  void use_preset(const std::string& name) override {
    if (name != "verl") return;
    aggregation_ = Aggregation::seq_mean_token_sum_norm;
    group_of_one_ = GroupOfOne::reward;
  }
  // PPO's clip of 0.2 without dual clip (Oat). No KL, no entropy term.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.2;
    objective.dual_clip = 0;
    objective.aggregation = aggregation_;
    return objective;
  }
  void fields(Fields& f) override {
    f.choice("group_of_one", group_of_one_, {"reward", "zero"}, "advantage of the only response to a prompt");
  }
  std::vector<Equation> equations() const override {
    return {{"Sec. 3.2, advantage", "A_i = R_i - mean(R)",
             "a response's reward against those of the same prompt, not divided by their deviation: hard and easy "
             "questions count for what they are"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    auto A = [&](std::span<const Response> group) { return centered_rewards(group, group_of_one_); };
    broadcast(batch, A, advantage, trace);
  }

 private:
  Aggregation aggregation_ = Aggregation::row_mean_token_sum_norm;
  GroupOfOne group_of_one_ = GroupOfOne::zero;
};

}  // namespace

std::unique_ptr<Method> make_drgrpo() { return std::make_unique<DrGrpo>(); }

}  // namespace ucas

// GPG, group policy gradient: the objective of REINFORCE itself. No ratio, no clip, no KL, no critic; the baseline is
// the group's mean, and the gradient is scaled up by what the prompts that teach nothing have taken from it:
//   A_i = alpha (R_i - mean(R)) / F_norm,   alpha = B / (B - M)
//   loss_t = -A lp_t
// B responses, M of them to prompts whose rewards are all equal; F_norm = 1 (the article tries the group's deviation
// and leaves it). With dynamic sampling M is 0 and so alpha 1.
//
//   preset  alpha                                     alone in its group
//   paper   B / (B - M), at least one group mixed     0
//   verl    B / |{i: R_i != 0}|                       its reward              which with rewards of 1 and 0 counts the
//                                                                             right ones instead
// Departures: the step's whole batch makes alpha (released: one device's part of it). Not here: sampling on until the
// share of mixed prompts passes a threshold (beta_th); objective.keep_mixed_groups samples until all are.
// Read for this: the authors' code (AMAP-ML/GPG: gpg_trainer.py) and table of variants, verl's core_algos.py.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

constexpr Metric kGpgAlpha{.key = "gpg/alpha",
                           .help = "what all advantages are multiplied by: 1 where every prompt is mixed"};

class Gpg final : public Method {
 public:
  explicit Gpg(std::string_view preset) : by_rewards_(preset == "verl") {
    objective_ = {.dual_clip = 0};
    if (by_rewards_) group_of_one_ = GroupOfOne::reward;
  }
  void fields(Fields& f) override {
    f.choice("group_of_one", group_of_one_, {"reward", "zero"},
             "advantage of the only response to a prompt: the reward, or zero");
  }
  std::vector<Equation> equations() const override {
    return {{"advantage", "A_i = alpha (R_i - mean(R))",
             "a response's reward against the mean of those of the same prompt"},
            by_rewards_
                ? Equation{"alpha", "alpha = B / |{i: R_i != 0}|", "all responses over those whose reward is not 0"}
                : Equation{"alpha", "alpha = B / (B - M)",
                           "M of the step's B responses belong to prompts whose rewards are all equal: the others "
                           "count for them, so that the size of a step does not fall with their number"},
            {"objective", "loss_t = -A lp_t", "the policy gradient itself: no ratio, nothing clips"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    const double alpha = scale_of(batch);
    auto A = [&](std::span<const Response> o) {
      std::vector<double> of = centered_rewards(o, group_of_one_);
      for (double& a : of) a *= alpha;
      return of;
    };
    broadcast(batch, A, advantage, recording);
    recording.record(kGpgAlpha, alpha);
  }

  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (size_t t = 0; t < in.logprob.size(); ++t) {
      const double A = in.advantage[t], lp = in.logprob[t];
      if (A == 0) continue;
      out.loss[t] = static_cast<float>(-A * lp);
      // The derivative reads no log-prob, and a NaN of one must be seen.
      const double moved = lp - in.old_logprob[t];
      out.d_logprob[t] = static_cast<float>(std::isnan(moved) ? moved : -A);
    }
  }

 private:
  // A NaN reward leaves open which prompts are mixed, and with it every advantage.
  double scale_of(const Batch& batch) const {
    double learning = 0, all = 0;  // responses, but for masked ones
    for (const Group& group : batch.groups) {
      const auto o = batch.of(group);
      if (std::ranges::any_of(o, [](const Response& o_i) { return std::isnan(o_i.reward); })) return std::nan("");
      const auto equal = [&](const Response& o_i) { return o_i.reward == o.front().reward; };
      const bool dead = !by_rewards_ && std::ranges::all_of(o, equal);
      for (const Response& o_i : o) {
        if (!o_i.trained) continue;
        all += 1;
        learning += by_rewards_ ? o_i.reward != 0 : !dead;
      }
    }
    return learning == 0 ? 1 : all / learning;
  }

  bool by_rewards_;
  GroupOfOne group_of_one_ = GroupOfOne::zero;
};

}  // namespace

MethodRow gpg_row() {
  return {.title = "GPG",
          .paper =
              "Chu et al. 2025, GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning "
              "(arXiv:2504.02546)",
          .presets = {"paper", "verl"},
          .create = create<Gpg>,
          .metrics = {&kGpgAlpha}};
}

}  // namespace ucas

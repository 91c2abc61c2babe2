// SimpleRL-Zoo: plain GRPO held near the base model by a KL loss and kept exploring by an entropy bonus.
//
//   J = token mean of min(rho A, clip(rho, 0.8, 1.2) A) - beta KL_k3(pi, pi_ref) + c H
//
//   preset    beta   c
//   paper     1e-4   1e-3   models up to 14B
//   released  1e-3   1e-3   the script's default, and the article's for larger models
//
// Departures: the released code takes the token mean inside every micro-batch and averages those; here it is that of
// the mini-batch (docs/numerics.md, "Exact accumulation"). Its reward is 1 or 0, without a format term: reward.correct,
// reward.wrong.
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class SimpleRl final : public GroupRelative {
 public:
  explicit SimpleRl(std::string_view preset) {
    objective_ = {.dual_clip = 0, .entropy_coeff = 1e-3, .kl_coeff = preset == "released" ? 1e-3 : 1e-4};
  }
  std::vector<Equation> equations() const override { return {equation("advantage")}; }
};

}  // namespace

MethodRow simplerl_row() {
  return {
      .title = "SimpleRL-Zoo",
      .paper =
          "Zeng et al. 2025, SimpleRL-Zoo: Investigating and Taming Zero Reinforcement Learning for Open Base Models "
          "in the Wild (arXiv:2503.18892)",
      .presets = {"paper", "released"},
      .create = create<SimpleRl>};
}

}  // namespace ucas

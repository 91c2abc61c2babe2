// Clip-Cov: the few tokens whose log-prob and advantage vary together most drive the policy's entropy down; a random
// handful of them is left out of each update. Everything else is GRPO with a wide clip:
//   cov_t = (A_t - mean A)(lp_t - mean lp)
//   k tokens, sampled uniformly among those with lb < cov_t < ub that the ratio clip does not hold, k = max(1, ratio n)
//   loss_t = max(-A r, -A clip(r, 1 - eps_low, 1 + eps_high)), and 0 for the chosen, which stay in the denominator
#include <algorithm>

#include "base/rng.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

// A number in [0, 1) of its own for each token of the batch, whatever it is packed with. The sampler's keys have no
// such step.
double number_of(const TokenAt& x, uint64_t seed) {
  constexpr uint32_t kNotAStep = 0x40000000;
  return uniform({seed, kNotAStep, 0, static_cast<uint32_t>(x.response), static_cast<uint32_t>(x.position)});
}

class ClipCov final : public GroupRelative {
 public:
  // The release chooses within each micro-batch. Its scripts: eps 1, no dual clip, token mean, DAPO's data and dynamic
  // sampling.
  explicit ClipCov(std::string_view preset) : scope_(preset == "released" ? Scope::micro : Scope::mini) {
    objective_ = {.clip_low = 1, .clip_high = 1, .dual_clip = 0, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("ratio", ratio_, Range{0, 1}, "fraction of the scope's tokens that lose the gradient, at least one token");
    f.field("lb", lb_, Range{-1e6, 1e6}, "lower bound of the covariance of tokens to select from");
    f.field("ub", ub_, Range{-1e6, 1e6}, "upper bound of the covariance of tokens to select from");
    scope_field(f, scope_);
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.selection = Selection{scope_}}; }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"covariance", str("cov_t = (A_t - mean A)(lp_t - mean lp), means over the ", scope_words(scope_)),
             "how much raising the token both raises the reward and sharpens the policy"},
            {"Clip-Cov",
             str("loss_t = 0 for max(1, ", ratio_, " n) tokens sampled at random among ", lb_, " < cov_t < ", ub_),
             "a few tokens of high covariance get no gradient, so that entropy stays"}};
  }

  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    std::vector<TokenAt> tokens = valid_tokens(in);
    std::vector<double> cov = covariances(in, tokens);
    LossBuffer buffer;
    LossOutput plain = buffer.view(mark.size());
    ratio_loss(in, plain);
    std::vector<std::pair<double, size_t>> order;  // (random number, place in `tokens`): by it, ties by place
    for (size_t i = 0; i < tokens.size(); ++i) {
      bool candidate = cov[i] > lb_ && cov[i] < ub_ && plain.clipped[tokens[i].index] == 0;
      if (candidate) order.emplace_back(number_of(tokens[i], in.seed), i);
    }
    std::sort(order.begin(), order.end());
    auto k = std::max<size_t>(1, static_cast<size_t>(ratio_ * static_cast<double>(tokens.size())));
    for (size_t i = 0; i < std::min(k, order.size()); ++i) mark[tokens[order[i].second].index] = 1;
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    ratio_loss(in, out);
    for (size_t t = 0; t < out.loss.size(); ++t) {
      out.clipped[t] = t < in.mark.size() ? in.mark[t] : 0;  // pg_clipfrac is the share left out, as released
      if (out.clipped[t] != 0) out.loss[t] = out.d_logprob[t] = 0;
    }
  }

 private:
  static void ratio_loss(LossInput in, LossOutput& out) {
    ObjectiveConfig objective = *in.objective;
    objective.dual_clip = 0;  // not part of this loss, whatever the objective says
    in.objective = &objective;
    clipped_ratio_loss(in, out);
  }

  double ratio_ = 2e-4;  // share of tokens left out
  double lb_ = 1, ub_ = 5;
  Scope scope_;
};

}  // namespace

MethodRow clip_cov_row() {
  return {.title = "Clip-Cov",
          .paper =
              "Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models "
              "(arXiv:2505.22617)",
          .presets = {"paper", "released"},
          .create = create<ClipCov>};
}

}  // namespace ucas

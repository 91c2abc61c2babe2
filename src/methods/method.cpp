#include "methods/method.h"

#include "methods/clipped_ratio.h"

namespace ucas {

void ObjectiveConfig::fields(Fields& f) {
  f.field("clip_low", clip_low, Range{0, 1}, "eps_low: the ratio is clipped below 1 - clip_low");
  f.field("clip_high", clip_high, Range{0, 1e6}, "eps_high: the ratio is clipped above 1 + clip_high");
  f.field("dual_clip", dual_clip, Range{0, 1e6}, "c > 1: loss of a wrong response is at most c |A|; 0 = off");
  f.choice(
      "aggregation", aggregation,
      {"token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_mean_token_sum_norm", "row_mean_token_sum_norm"},
      "how token losses are averaged over a mini-batch");
  f.field("norm_length", norm_length, Range{0, 1e9}, "constant of the ..._norm aggregations; 0 = the response limit");
  f.field("entropy_coeff", entropy_coeff, Range{-10, 10}, "entropy bonus: loss -= entropy_coeff * mean entropy");
  f.field("kl_coeff", kl_coeff, Range{0, 100}, "KL loss against the frozen reference: loss += kl_coeff * mean KL");
  f.choice("kl_estimator", kl_estimator, {"k1", "abs", "k2", "k3", "k3_plus"}, "estimator of that KL");
  f.field("keep_mixed_groups", keep_mixed_groups, "train only on prompts with some right and some wrong responses");
}

void CriticConfig::fields(Fields& f) {
  f.section("optimizer", optimizer);
  f.field("updates", updates, Range{1, 1000}, "critic updates per rollout step");
  f.field("value_clip", value_clip, Range{0, 1e6}, "the value may move this far from the old one; beyond, no gradient; 0 = off");
  f.field("model", model, "checkpoint that the critic starts from; empty = the policy's");
}

void PrmConfig::fields(Fields& f) {
  f.section("optimizer", optimizer);
  f.choice("order", order, {"before", "after"}, "train the reward model before or after it scores the batch");
  f.field("beta", beta, Range{1e-6, 100}, "P(right) = sigmoid(beta * sum of log-ratios)");
  f.field("model", model, "checkpoint that the reward model starts from; empty = the policy's");
}

void Method::token_loss(const LossInput& in, LossOutput& out) const { clipped_ratio_loss(in, out); }

}  // namespace ucas

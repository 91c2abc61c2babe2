#include "objective/config.h"

namespace ucas {

void ObjectiveConfig::fields(Fields& f) {
  f.field("clip_low", clip_low, Range{0, 1}, "lower clip range eps_low: the ratio is clipped below 1 - clip_low");
  f.field("clip_high", clip_high, Range{0, 1e6}, "upper clip range eps_high: the ratio is clipped above 1 + clip_high");
  f.field("dual_clip", dual_clip, Range{0, 1e6},
          "dual-clip constant c > 1: the loss of a wrong response is at most c |A|; 0 = off");
  f.choice("aggregation", aggregation,
           {"token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_mean_token_sum_norm",
            "row_mean_token_sum_norm", "group_token_mean"},
           "aggregation of token losses over a mini-batch");
  f.field("entropy_coeff", entropy_coeff, Range{-10, 10},
          "coefficient of the entropy bonus: loss -= entropy_coeff * mean entropy");
  f.field("entropy_target", entropy_target, Range{0, 100},
          "target entropy in nats: the bonus starts at entropy_coeff, grows below the target, shrinks and has no "
          "effect above; 0 = constant bonus");
  f.field("kl_coeff", kl_coeff, Range{0, 100},
          "coefficient of the KL loss against the reference: loss += kl_coeff * mean KL; 0 = off");
  f.choice("kl_estimator", kl_estimator, {"k1", "abs", "k2", "k3", "k3_plus"}, "KL estimator of the KL loss");
  f.field("keep_mixed_groups", keep_mixed_groups,
          "dynamic sampling: train only on groups with some right and some wrong responses");
  f.choice("keep_metric", keep_metric, {"acc", "score", "reward"},
           "metric that must differ in a mixed group: acc (verdict), score, or reward (penalties included)");
  f.field("keep_low", keep_low, Range{0, 1}, "minimum mean accuracy of a prompt to train on");
  f.field("keep_high", keep_high, Range{0, 1}, "maximum mean accuracy of a prompt to train on");
  f.choice("tis", tis, {"off", "token", "sequence", "sequence_mask"},
           "importance sampling correction min(exp(old - rollout), 2): per token, per response, or 0 for responses "
           "above 2");
}

void CriticConfig::fields(Fields& f) {
  f.section("optimizer", optimizer);
  f.field("updates", updates, Range{1, 1000}, "critic updates per rollout step");
  f.field("value_clip", value_clip, Range{0, 1e6},
          "value clip range: no gradient where a value is farther from the old value; 0 = off");
  f.field("model", model, OptionNames::checkpoint, "initial checkpoint of the critic; empty = the policy's");
}

void PrmConfig::fields(Fields& f) {
  f.section("optimizer", optimizer);
  f.choice("order", order, {"before", "after"},
           "order of the reward model's update: before or after scoring the batch");
  f.field("beta", beta, Range{1e-6, 100}, "reward scale: P(right) = sigmoid(beta * sum of log-ratios)");
  f.field("model", model, OptionNames::checkpoint, "initial checkpoint of the reward model; empty = the policy's");
}

}  // namespace ucas

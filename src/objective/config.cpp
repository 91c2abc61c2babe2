#include "objective/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

void KlSchedule::fields(Fields& f) {
  f.choice("form", form,
           "schedule of the KL coefficient: constant, or linear or cosine from kl_coeff to kl_schedule.end");
  f.field("end", end, Range{0, 100}, "KL coefficient at the end of the schedule");
  f.field("steps", steps, Range{0, 1e9}, "rollout steps until the KL coefficient reaches kl_schedule.end");
}

std::string KlSchedule::refusal(const std::string& section) const {
  if (form == KlForm::constant && (end != 0 || steps != 0)) {
    return str(section, ".form = \"constant\" with ", end != 0 ? "end" : "steps",
               ": these are of a coefficient that moves; say linear or cosine");
  }
  if (form == KlForm::constant || steps > 0) return "";
  return str(section, ".form = \"", word_of(form), "\" needs ", section, ".steps: over how many steps, such as 100");
}

double KlSchedule::weight(double first, int64_t step) const {
  if (form == KlForm::constant) return first;
  const double way = std::clamp(static_cast<double>(step - 1) / static_cast<double>(steps), 0.0, 1.0);
  const double gone = form == KlForm::linear ? way : 0.5 * (1 - std::cos(std::numbers::pi * way));
  return first + (end - first) * gone;
}

void ObjectiveConfig::fields(Fields& f) {
  f.field("clip_low", clip_low, Range{0, 1}, "lower clip range eps_low: the ratio is clipped below 1 - clip_low");
  f.field("clip_high", clip_high, Range{0, 1e6}, "upper clip range eps_high: the ratio is clipped above 1 + clip_high");
  f.field("dual_clip", dual_clip, Range{0, 1e6},
          "dual-clip constant c > 1: the loss of a wrong response is at most c |A|; 0 = off");
  f.choice("aggregation", aggregation,
           {"token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_mean_token_sum_norm",
            "row_mean_token_sum_norm", "group_token_mean"},
           "aggregation of token losses over a mini-batch");
  f.field("norm_length", norm_length, Range{0, 1e9},
          "constant divisor of the ..._norm aggregations, in tokens; 0 = rollout.response_length");
  f.field("entropy_coeff", entropy_coeff, Range{-10, 10},
          "coefficient of the entropy bonus: loss -= entropy_coeff * mean entropy");
  f.field("entropy_target", entropy_target, Range{0, 100},
          "target entropy in nats: the bonus starts at entropy_coeff, grows below the target, shrinks and has no "
          "effect above; 0 = constant bonus");
  f.field("entropy_step", entropy_step, Range{0, 10},
          "change of the entropy bonus per rollout step under entropy_target");
  f.field("kl_coeff", kl_coeff, Range{0, 100},
          "coefficient of the KL loss against the reference: loss += kl_coeff * mean KL; 0 = off");
  f.choice("kl_estimator", kl_estimator, {"k1", "abs", "k2", "k3", "k3_plus"}, "KL estimator of the KL loss");
  f.field("keep_mixed_groups", keep_mixed_groups,
          "dynamic sampling: train only on groups with some right and some wrong responses");
  f.choice("keep_metric", keep_metric, {"acc", "score", "reward"},
           "metric that must differ in a mixed group: acc (verdict), score, or reward (penalties included)");
  f.field("keep_low", keep_low, Range{0, 1}, "minimum mean accuracy of a prompt to train on");
  f.field("keep_high", keep_high, Range{0, 1}, "maximum mean accuracy of a prompt to train on");
  f.field("keep_untruncated", keep_untruncated,
          "drop prompts with a response that reaches the length limit less one token");
  f.choice("keep_order", keep_order, {"refill", "prefer"},
           "order of the filter: refill = generate until enough prompts pass; prefer = passing prompts first, others "
           "fill the batch");
  f.choice("tis", tis, {"off", "token", "sequence", "sequence_mask"},
           "importance sampling correction min(exp(old - rollout), tis_cap): per token, per response, or 0 for "
           "responses above tis_cap");
  f.field("tis_cap", tis_cap, Range{1e-6, 1e6}, "maximum importance weight of tis (verl: rollout_is_threshold)");
  f.choice("reject", reject, {"off", "token_ratio", "sequence_ratio", "geometric_ratio", "token_k3", "sequence_k3"},
           "rejection of tokens or responses with sampler/trainer mismatch (verl's rollout_rs: token_k1, seq_sum_k1, "
           "seq_mean_k1, token_k3, seq_mean_k3)");
  f.field("reject_low", reject_low, Range{0, 1}, "minimum accepted ratio exp(old - rollout)");
  f.field("reject_high", reject_high, Range{0, 1e6},
          "maximum accepted ratio exp(old - rollout), or maximum k3 divergence");
  f.choice("correct_by", correct_by, {"whole", "sampled"},
           "rollout log-probs in tis and reject under top_p, top_k or min_p: whole vocabulary, or the truncated "
           "distribution (ratio includes the kept mass)");
  f.choice(
      "accumulation", accumulation, {"exact", "verl_legacy"},
      "accumulation of micro-batches: exact, or verl_legacy = each micro-batch's mean times rows_micro / rows_mini");
  f.section("kl_schedule", kl_schedule);
}

void ObjectiveConfig::validate() const {
  if (std::string wrong = kl_schedule.refusal("objective.kl_schedule"); !wrong.empty())
    throw Error(ErrorKind::config, wrong);
  if (entropy_target > 0 && entropy_coeff < 0) {
    throw Error(ErrorKind::config,
                str("objective.entropy_coeff = ", entropy_coeff, " with objective.entropy_target = ", entropy_target,
                    ": the bonus starts there and is never negative; set it to 0 or above"));
  }
  bool by_ratio =
      reject == Reject::token_ratio || reject == Reject::sequence_ratio || reject == Reject::geometric_ratio;
  if (by_ratio && reject_high < 1) {
    throw Error(ErrorKind::config,
                str("objective.reject_high = ", reject_high,
                    ": a ratio of 1, where sampler and trainer agree, would be rejected; raise it above 1"));
  }
  if (reject != Reject::off && reject_high <= 0) {
    throw Error(ErrorKind::config, "objective.reject_high = 0: everything would be rejected; raise it");
  }
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

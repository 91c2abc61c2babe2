#include "objective/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

void KlSchedule::fields(Fields& f) {
  f.choice("form", form, "the coefficient stays, or goes to `end` over `steps`, in a straight line or half a cosine");
  f.field("end", end, Range{0, 100}, "the coefficient after these steps");
  f.field("steps", steps, Range{0, 1e9}, "rollout steps from the start until it is there");
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
  f.field("clip_low", clip_low, Range{0, 1}, "eps_low: the ratio is clipped below 1 - clip_low");
  f.field("clip_high", clip_high, Range{0, 1e6}, "eps_high: the ratio is clipped above 1 + clip_high");
  f.field("dual_clip", dual_clip, Range{0, 1e6}, "c > 1: loss of a wrong response is at most c |A|; 0 = off");
  f.choice("aggregation", aggregation,
           {"token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_mean_token_sum_norm",
            "row_mean_token_sum_norm", "group_token_mean"},
           "how token losses are averaged over a mini-batch");
  f.field("norm_length", norm_length, Range{0, 1e9}, "constant of the ..._norm aggregations; 0 = the response limit");
  f.field("entropy_coeff", entropy_coeff, Range{-10, 10}, "entropy bonus: loss -= entropy_coeff * mean entropy");
  f.field("entropy_target", entropy_target, Range{0, 100},
          "nats; entropy_coeff is where the bonus starts, it grows while the mean entropy is below this, falls "
          "otherwise, and acts only up to it; 0 = the bonus is constant");
  f.field("entropy_step", entropy_step, Range{0, 10}, "by how much entropy_target moves the bonus each rollout step");
  f.field("kl_coeff", kl_coeff, Range{0, 100}, "KL loss against the frozen reference: loss += kl_coeff * mean KL");
  f.choice("kl_estimator", kl_estimator, {"k1", "abs", "k2", "k3", "k3_plus"}, "estimator of that KL");
  f.field("keep_mixed_groups", keep_mixed_groups, "train only on prompts with some right and some wrong responses");
  f.choice("keep_metric", keep_metric, {"acc", "score", "reward"},
           "what must differ in a mixed group: the verdict, its score, or the shaped reward");
  f.field("keep_low", keep_low, Range{0, 1}, "train only on prompts whose mean accuracy is at least this");
  f.field("keep_high", keep_high, Range{0, 1}, "and at most this");
  f.field("keep_untruncated", keep_untruncated, "and none of whose responses reaches the length limit less one token");
  f.choice("keep_order", keep_order, {"refill", "prefer"},
           "generate until enough prompts pass these tests, or take those that pass first and fill up with others");
  f.choice("tis", tis, {"off", "token", "sequence", "sequence_mask"},
           "weigh the loss by min(exp(old - rollout), tis_cap): per token, per response, or 0 for a response above it");
  f.field("tis_cap", tis_cap, Range{1e-6, 1e6}, "largest such weight (verl: rollout_is_threshold)");
  f.choice("reject", reject, {"off", "token_ratio", "sequence_ratio", "geometric_ratio", "token_k3", "sequence_k3"},
           "leave out what the sampler saw otherwise (verl's rollout_rs: token_k1, seq_sum_k1, seq_mean_k1, token_k3, "
           "seq_mean_k3)");
  f.field("reject_low", reject_low, Range{0, 1}, "smallest accepted ratio exp(old - rollout)");
  f.field("reject_high", reject_high, Range{0, 1e6}, "largest accepted ratio, or k3 divergence");
  f.choice(
      "correct_by", correct_by, {"whole", "drawn"},
      "under top_p, top_k or min_p, rollout in the two above is the sampler's log-prob under the whole vocabulary, or "
      "under the truncated law that was drawn from (the ratio then holds the kept mass)");
  f.choice("accumulation", accumulation, {"exact", "verl_legacy"},
           "micro-batches add up exactly, or as rows_micro / rows_mini times the mean inside each");
  f.section("kl_schedule", kl_schedule);
}

void ObjectiveConfig::validate() const {
  if (std::string wrong = kl_schedule.refusal("objective.kl_schedule"); !wrong.empty()) throw Error("config", wrong);
  if (entropy_target > 0 && entropy_coeff < 0) {
    throw Error("config", str("objective.entropy_coeff = ", entropy_coeff, " with objective.entropy_target = ",
                              entropy_target, ": the bonus starts there and is never negative; set it to 0 or above"));
  }
  bool by_ratio =
      reject == Reject::token_ratio || reject == Reject::sequence_ratio || reject == Reject::geometric_ratio;
  if (by_ratio && reject_high < 1) {
    throw Error("config", str("objective.reject_high = ", reject_high,
                              ": a ratio of 1, where sampler and trainer agree, would be rejected; raise it above 1"));
  }
  if (reject != Reject::off && reject_high <= 0) {
    throw Error("config", "objective.reject_high = 0: everything would be rejected; raise it");
  }
}

void CriticConfig::fields(Fields& f) {
  f.section("optimizer", optimizer);
  f.field("updates", updates, Range{1, 1000}, "critic updates per rollout step");
  f.field("value_clip", value_clip, Range{0, 1e6},
          "the value may move this far from the old one; beyond, no gradient; 0 = off");
  f.field("model", model, "checkpoint that the critic starts from; empty = the policy's");
}

void PrmConfig::fields(Fields& f) {
  f.section("optimizer", optimizer);
  f.choice("order", order, {"before", "after"}, "train the reward model before or after it scores the batch");
  f.field("beta", beta, Range{1e-6, 100}, "P(right) = sigmoid(beta * sum of log-ratios)");
  f.field("model", model, "checkpoint that the reward model starts from; empty = the policy's");
}

}  // namespace ucas

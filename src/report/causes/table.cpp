#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "core/metrics.h"
#include "report/causes/cause.h"

namespace ucas {

std::span<const CauseKind> cause_kinds() {
  using enum CauseRule;
  static const std::vector<CauseKind> kKinds = {
      // The alarms.
      {.title = "Entropy collapse",
       .alarm = true,
       .key = metric::actor_entropy.key,
       .rule = under_first,
       .limit = 0.1,
       .meaning =
           "The policy hardly explores any more. Look at pass@k: if it falls while accuracy stalls, use a higher upper "
           "clip, an entropy bonus, or stop earlier.",
       .also = {metric::self_certainty.mean.key, metric::actor_lr.key},
       .responses = ShownBy::wrong,
       .tokens = ShownIn::sure,
       .remedies = {{"objective.clip_high", "raise it (DAPO: 0.28), so that rare tokens may grow"},
                    {"objective.entropy_target", "steer an entropy bonus"},
                    {"optimizer.lr", "lower it"},
                    {"train.best_metric", "keep the checkpoint from before"}},
       .needs_trouble = true},
      {.title = "Dead groups",
       .alarm = true,
       .key = metric::train_dead_groups.key,
       .rule = above,
       .limit = 0.5,
       .meaning = "Such groups teach nothing and cost their rollouts.",
       .also = {metric::train_solve_all.key, metric::train_solve_none.key, metric::train_taught_token_share.key},
       .remedies = {{"data.files", "problems that the model sometimes solves"},
                    {"rollout.n", "more samples a prompt"},
                    {"objective.keep_mixed_groups", "sample until enough groups are mixed"}}},
      {.title = "No right answer",
       .alarm = true,
       .key = metric::train_accuracy.key,
       .rule = special,
       .limit = 5,
       .when = "`train/accuracy` 0 in the last 5 steps or more, though responses were graded",
       .meaning = "Either the problems are too hard for this model, or right answers are not taken for right: compare "
                  "gold and "
                  "response in rollouts/, and see how both are read with `ucas verify --explain`.",
       .also = {metric::verifier_unequal_share.key, metric::verifier_unparseable_share.key},
       .responses = ShownBy::wrong,
       .remedies = {{"reward.grader", "the grader that reads such answers"},
                    {"reward.extract", "where the answer is looked for"},
                    {"data.template", "a prompt that asks for the form that is graded"},
                    {"data.columns.answer", "the column that holds the right answer"},
                    {"data.files", "easier problems"}}},
      {.title = "Length clipping",
       .alarm = true,
       .key = metric::response_length_clip_ratio.key,
       .rule = above,
       .limit = 0.1,
       .meaning = "Answers are cut before they end. Raise the response limit, or look whether the model rambles.",
       .also = {metric::train_truncated_share.key, metric::response_length.mean.key},
       .responses = ShownBy::cut,
       .remedies = {{"rollout.response_length", "raise it"},
                    {"reward.overlong_buffer", "take off a little before the limit"},
                    {"reward.truncated", "mask: leave cut responses out of the loss"}}},
      {.title = "Unparseable answers",
       .alarm = true,
       .key = metric::verifier_unparseable_share.key,
       .rule = above,
       .limit = 0.1,
       .meaning = "The reward sees format, not skill. Check the template and the stop tokens against a few responses.",
       .responses = ShownBy::unreadable,
       .remedies = {{"data.template", "a prompt that asks for the form that is graded"},
                    {"reward.extract", "where the answer is looked for"},
                    {"rollout.stop", "texts that end a response"}}},
      {.title = "Sampler/trainer mismatch",
       .alarm = true,
       .key = metric::rollout_logprob_diff_max.key,
       .rule = ever,
       .limit = 1e-3,
       .meaning =
           "Responses are then sampled from another policy than the one that is trained. Expected on a GPU, whose "
           "library "
           "sums products of few rows in another order than those of many (objective.tis corrects for it), and with "
           "low-precision sampling: sample in the precision of the trainer. On the CPU it points to a bug: compare "
           "with "
           "UCAS_ISA=scalar. Truncation by top-p or top-k is no part of it: both are of the whole vocabulary.",
       .also = {metric::rollout_logprob_diff_mean.key, metric::rollout_logprob_diff_share.key,
                metric::rollout_tis_clipped_share.key},
       .tokens = ShownIn::differing,
       .remedies = {{"objective.tis", "weigh the loss by the ratio of both"},
                    {"rollout.old_log_prob", "trainer: take the trainer's figures of all tokens"}}},
      {.title = "Numbers that are not finite",
       .alarm = true,
       .key = "",
       .rule = special,
       .when = "any `null`",
       .meaning = "The step was skipped or its numbers overflowed. Lower the learning rate; look at the gradient norm "
                  "before it.",
       .also = {metric::actor_grad_norm.key, metric::actor_lr.key},
       .remedies = {{"optimizer.lr", "lower it"},
                    {"optimizer.grad_clip", "lower it"},
                    {"dtype", "f32 instead of bf16"}}},
      {.title = "Skipped steps",
       .alarm = true,
       .key = metric::train_skipped_steps.key,
       .rule = counter,
       .meaning =
           "Steps that were not finite: lower the learning rate. Steps without groups: use problems that the model "
           "sometimes solves, or more samples a prompt.",
       .also = {metric::train_empty_steps.key, metric::actor_grad_norm.key, metric::actor_lr.key},
       .remedies = {{"optimizer.lr", "lower it"}, {"optimizer.grad_clip", "lower it"}}},
      {.title = "Empty steps",
       .alarm = true,
       .key = metric::train_empty_steps.key,
       .rule = counter,
       .meaning =
           "No group of these steps passed the filter. Use problems that the model sometimes solves, or more samples a "
           "prompt.",
       .also = {metric::train_dead_groups.key, metric::train_solve_all.key, metric::train_solve_none.key},
       .remedies = {{"rollout.n", "more samples a prompt"},
                    {"data.max_num_gen_batches", "more rounds of sampling"},
                    {"data.files", "problems that the model sometimes solves"}}},
      // Asked by `ucas diagnose` alone: they need a before and an after.
      {.title = "Entropy explosion",
       .key = metric::actor_entropy.key,
       .rule = over_first,
       .limit = 2,
       .floor = 0.5,
       .meaning = "The policy spreads over tokens that it did not use: updates that are too large, an entropy bonus "
                  "that is too "
                  "strong, or advantages that punish whatever is sampled.",
       .also = {metric::actor_lr.key, metric::actor_entropy_coeff.key, metric::critic_advantages.mean.key},
       .responses = ShownBy::wrong,
       .tokens = ShownIn::unsure,
       .remedies = {{"optimizer.lr", "lower it"},
                    {"objective.entropy_coeff", "lower it"},
                    {"objective.kl_coeff", "hold the policy near its reference"}}},
      {.title = "Gradient spike",
       .key = metric::actor_grad_norm.key,
       .rule = spike,
       .limit = 5,
       .meaning =
           "One update outweighed all before it. Look at the responses of that step: a rare length, a broken text, an "
           "advantage that is far out.",
       .also = {metric::actor_lr.key, metric::actor_pg_loss.key, metric::critic_advantages.max.key},
       .responses = ShownBy::long_ones,
       .tokens = ShownIn::moved,
       .remedies = {{"optimizer.grad_clip", "lower it"},
                    {"optimizer.lr", "lower it"},
                    {"optimizer.warmup_steps", "more of them"}}},
      {.title = "Learning rate jump",
       .key = metric::actor_lr.key,
       .rule = spike,
       .limit = 5,
       .meaning = "The learning rate rose at once: a changed option on --resume, or a schedule that was not meant.",
       .also = {metric::actor_grad_norm.key},
       .remedies = {{"optimizer.lr", "as before"}, {"optimizer.warmup_steps", "rise over some steps"}}},
      {.title = "Updates too large",
       .key = metric::actor_ppo_kl.key,
       .rule = ever,
       .limit = 0.05,
       .meaning = "Within one step the policy moved so far from what had sampled that the clipped ratios say little.",
       .also = {metric::actor_pg_clipfrac.key, metric::actor_pg_clipfrac_lower.key, metric::actor_lr.key,
                metric::actor_grad_norm.key},
       .tokens = ShownIn::moved,
       .remedies = {{"optimizer.lr", "lower it"},
                    {"update.epochs", "fewer passes over a step"},
                    {"update.mini_batch_size", "larger, so that a step has fewer updates"}}},
      {.title = "KL to the reference",
       .key = metric::actor_kl_loss.key,
       .rule = spike,
       .limit = 5,
       .floor = 0.1,
       .meaning = "The policy left its reference faster than the penalty holds it.",
       .also = {metric::actor_kl_coef.key, metric::actor_lr.key},
       .remedies = {{"objective.kl_coeff", "raise it"}, {"optimizer.lr", "lower it"}}},
      {.title = "KL in the reward",
       .key = metric::actor_reward_kl_penalty.key,
       .rule = spike,
       .limit = 5,
       .floor = 0.1,
       .meaning = "The policy left its reference faster than the penalty holds it.",
       .also = {metric::actor_reward_kl_penalty_coeff.key, metric::actor_lr.key},
       .remedies = {{"reward.kl_coeff", "raise it"}, {"optimizer.lr", "lower it"}}},
      {.title = "Verifier over budget",
       .key = metric::verifier_over_budget_share.key,
       .rule = above,
       .limit = 0.05,
       .meaning =
           "Grading would have cost too much, or a program ran out of its time, and the response is counted wrong.",
       .also = {metric::timing_reward.key},
       .responses = ShownBy::costly,
       .remedies = {{"reward.code.wall_seconds", "more of them, for programs"},
                    {"reward.code.cpu_seconds", "more of them, for programs"},
                    {"reward.grader", "one that fits the answers"}}},
      {.title = "Format paid without an answer",
       .key = metric::rewards_mean.key,
       .rule = special,
       .limit = 0.1,
       .when = "a part of the score other than `answer` and `command` rose by 0.1 while `train/accuracy` gained less "
               "than 0.02; or it is at 0.5 or more and accuracy was never 0.1",
       .meaning = "A part of the score that is no answer is earned while right answers do not become more.",
       .also = {metric::train_accuracy.key, "rewards/answer/mean"},
       .responses = ShownBy::paid_wrong,
       .remedies = {{"reward.weights", "a smaller weight for the part"},
                    {"reward.format", "a pattern that asks for more"}}},
      {.title = "Length growth",
       .key = metric::response_length.mean.key,
       .rule = special,
       .limit = 2,
       .when = "`response_length/mean` doubled while accuracy gained less than 0.02",
       .meaning = "Responses became longer and are not right more often.",
       .also = {metric::response_length_clip_ratio.key, metric::train_accuracy.key},
       .responses = ShownBy::long_ones,
       .remedies = {{"reward.overlong_buffer", "take off a little before the limit"},
                    {"reward.weights", "a part length"},
                    {"objective.aggregation", "a mean that does not dilute long wrong responses (token_mean)"}}},
      {.title = "Length collapse",
       .key = metric::response_length.mean.key,
       .rule = special,
       .limit = 0.5,
       .when = "`response_length/mean` halved while accuracy fell",
       .meaning = "Responses became shorter and are right less often: the policy gave up working answers out.",
       .also = {metric::train_accuracy.key, metric::actor_entropy.key},
       .responses = ShownBy::wrong,
       .remedies = {{"objective.aggregation", "a mean that does not favour short responses"},
                    {"reward.weights", "less weight for the part length"},
                    {"optimizer.lr", "lower it"}}},
      {.title = "Repeated text",
       .key = "stored/repeated",
       .rule = above,
       .limit = 0.2,
       .when = "of the stored responses 20 % repeat themselves: half of their 4-grams occurred before, or the last 60 "
               "bytes or more repeat one piece",
       .meaning = "Responses repeat themselves until the limit: of 4 words at least half stood there before, or the "
                  "end is one "
                  "piece again and again.",
       .also = {metric::response_length.mean.key, metric::response_length_clip_ratio.key, metric::actor_entropy.key},
       .responses = ShownBy::repeated,
       .remedies = {{"rollout.stop", "texts that end a response"},
                    {"reward.overlong_buffer", "take off a little before the limit"},
                    {"optimizer.lr", "lower it"}}},
      {.title = "Identical responses",
       .key = "stored/identical",
       .rule = above,
       .limit = 0.5,
       .when = "more than half of the prompts with several stored responses have one text alone",
       .meaning = "Most prompts get one and the same response from every sample: groups have nothing to compare.",
       .also = {metric::actor_entropy.key, metric::train_dead_groups.key},
       .responses = ShownBy::wrong,
       .tokens = ShownIn::sure,
       .remedies = {{"rollout.temperature", "raise it"},
                    {"objective.entropy_target", "steer an entropy bonus"},
                    {"objective.clip_high", "raise it"}},
       .needs_trouble = true},
      {.title = "Too few groups",
       .key = metric::train_groups_trained.key,
       .rule = special,
       .limit = 0.5,
       .when = "`train/groups_trained` below half of `data.train_batch_size`: dynamic sampling runs out of problems "
               "with a signal",
       .meaning = "Dynamic sampling finds less than half of the prompts that a step asks for: the problems that still "
                  "teach are "
                  "used up, or none is within reach.",
       .also = {metric::train_groups_generated.key, metric::train_num_gen_batches.key, metric::train_solve_all.key,
                metric::train_solve_none.key},
       .remedies = {{"data.files", "more problems"}, {"data.max_num_gen_batches", "more rounds of sampling"}}},
      {.title = "Few tokens with an advantage",
       .key = metric::train_taught_token_share.key,
       .rule = below,
       .limit = 0.05,
       .meaning = "Nearly all that was sampled has an advantage of 0 or is masked.",
       .also = {metric::train_dead_groups.key, metric::train_truncated_share.key},
       .remedies = {{"rollout.n", "more samples a prompt"},
                    {"data.files", "problems that the model sometimes solves"},
                    {"reward.truncated", "grade, so that cut responses count"}}},
      {.title = "Overfitting",
       .key = metric::val_accuracy.key,
       .rule = special,
       .limit = 2,
       .when = "validation fell while `train/accuracy` rose, after two passes or more",
       .meaning = "The training problems are solved more often, those of the validation less: the same problems came "
                  "too often.",
       .also = {metric::train_accuracy.key, metric::training_passes.key},
       .remedies = {{"data.files", "more problems"}, {"train.best_metric", "keep that checkpoint"}}},
  };
  return kKinds;
}

const char* dead_groups_reading(double all, double none) {
  return all >= none ? "Most are solved by every response: the task has become too easy."
                     : "Most are solved by no response: the task is too hard for this model.";
}

std::string when_of(const CauseKind& kind) {
  const Metric* metric = find_metric(kind.key);
  const bool share = metric != nullptr && metric->unit == Unit::share;
  const std::string key = str("`", kind.key, "`"), limit = share ? percent(kind.limit, 0) : str(kind.limit);
  const std::string unit = metric == nullptr || share ? "" : name_of(metric->unit);
  std::string text;
  if (*kind.when != '\0') {
    text = kind.when;
  } else if (kind.rule == CauseRule::above || kind.rule == CauseRule::below) {
    const char* side = kind.rule == CauseRule::above ? " above " : " below ";
    text = str("mean of the last ", kCauseWindow, " ", key, side, limit);
  } else if (kind.rule == CauseRule::over_first) {
    text = str("mean of the last ", kCauseWindow, " ", key, " above ", kind.limit, " times the first steps and ",
               kind.floor, " ", unit, " more");
  } else if (kind.rule == CauseRule::under_first) {
    text = str("the last ", key, " below ", percent(kind.limit, 0), " of the first");
  } else if (kind.rule == CauseRule::ever) {
    text = str(key, " of a step beyond ", limit, unit.empty() ? "" : " ", unit);
  } else if (kind.rule == CauseRule::spike) {
    text = str(key, " above ", kind.limit, " times the largest of the steps before (at most 50, at least 5)",
               kind.floor > 0 ? str(", and above ", kind.floor) : "");
  } else if (kind.rule == CauseRule::counter) {
    text = str(key, " above 0");
  }
  return kind.needs_trouble ? str(text, "; a note while the reward has risen and stays") : text;
}

const CauseKind& cause_kind(std::string_view title) {
  const auto kinds = cause_kinds();
  const auto found = std::ranges::find_if(kinds, [&](const CauseKind& kind) { return kind.title == title; });
  UCAS_CHECK(found != kinds.end(), "the cause must be a row of the table");
  return *found;
}

}  // namespace ucas

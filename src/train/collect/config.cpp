#include "train/collect/config.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "objective/advantage/reward_terms.h"
#include "verify/registry.h"

namespace ucas {

void TrainDataConfig::fields(Fields& f) {
  f.field("files", files, OptionNames::training_data, "training problem files, JSONL", Effect::place);
  f.field("template", prompt_template,
          "prompt template: auto, chat, qwen_math, qwen_boxed, orz, plain or a file; auto = the checkpoint's chat "
          "template, else qwen_math");
  examples.fields(f);
  f.field("max_prompt_length", max_prompt_length, Range{1, 1 << 20},
          "maximum prompt length in tokens; longer prompts are dropped and counted", Effect::size);
  f.field("train_batch_size", train_batch_size, Range{1, 1 << 20}, "prompts trained on per step", Effect::size);
  f.field("gen_batch_size", gen_batch_size, Range{0, 1 << 20},
          "prompts per generation batch; 0 = data.train_batch_size", Effect::size);
  f.field("max_num_gen_batches", max_num_gen_batches, Range{0, 1 << 20},
          "maximum generation batches per step; 0 = no limit", Effect::size);
  f.field("train_short", train_short,
          "train on fewer than data.train_batch_size prompts after the last generation batch; false = stop the run, as "
          "DAPO's code");
  f.field("shuffle", shuffle, "shuffle problems every epoch, keyed by the seed");
  f.field("skip_bad_rows", skip_bad_rows, "skip and count unusable rows; above 1 % of rows the run stops",
          Effect::place);
  f.field("val_files", val_files, OptionNames::evaluation_data, "validation problem files, JSONL", Effect::place);
  f.section("columns", columns);
}

void RewardConfig::fields(Fields& f) {
  f.field("correct", correct, Range{-100, 100}, "reward of a right answer");
  f.field("wrong", wrong, Range{-100, 100}, "reward of a wrong or unparseable answer");
  f.field("partial", partial,
          "reward programs by the fraction of tests passed, between reward.wrong and reward.correct");
  f.choice("grader", grader,
           "grader: exact mathematics, choice letter, number within reward.tolerance, program run on tests, or a "
           "simpler one for comparison");
  f.field("graders", graders,
          "graders by data source, SOURCE=GRADER, such as \"leetcode=code\"; other sources use reward.grader");
  f.field("tolerance", tolerance, Range{0, 1},
          "relative tolerance of the grader numeric: |a - b| <= tolerance * max(|a|, |b|)");
  f.field("weights", weights,
          "reward as a weighted sum, PART=WEIGHT of answer, command, format, length, such as \"answer=1\", "
          "\"format=0.2\"; empty = answer, or the command's score");
  f.field("format", format,
          "pattern of the format reward that the whole response must match: think_answer, or a regular expression (. "
          "matches any character)");
  f.field("command", command,
          "reward program, such as \"python3 reward.py\": reads one JSON line per response, writes {\"id\": N, "
          "\"score\": X}; empty = the grader's verdict");
  f.field("python", python,
          "reward by a Python function with the parameters of TRL's or verl's, FILE.py:FUNCTION or package.function; "
          "reasoning_gym = the scorer of each rg: task; empty = none");
  f.field("command_seconds", command_seconds, Range{0, 1e6},
          "seconds without a reply of the reward program while replies are due; 0 = no limit", Effect::bookkeeping);
  f.choice("extract", extract,
           "answer extraction: strict = last box; lenient = or usual phrases; answer_tag = last box in the last "
           "<answer>; auto = lenient for chat prompts that ask for no box, else strict");
  f.choice("truncated", truncated,
           "responses cut at the length limit: grade as usual, count as wrong, or mask from the loss (the reward still "
           "counts in the group)");
  f.field("overlong_buffer", overlong_buffer, Range{0, 1 << 20},
          "DAPO overlong buffer: length of the soft penalty zone before rollout.response_length, in tokens; 0 = off",
          Effect::size);
  f.field("overlong_factor", overlong_factor, Range{0, 100}, "maximum overlong penalty, subtracted from the reward");
  f.field("kl_coeff", kl_coeff, Range{0, 100},
          "KL penalty in the reward, per token: kl_coeff * KL(old policy, reference); 0 = off");
  f.choice("kl_estimator", kl_estimator, {"k1", "abs", "k2", "k3", "k3_plus"},
           "KL estimator of the KL penalty in the reward");
  f.section("code", code);
}

std::string RewardConfig::scorer() const {
  return command.empty() ? str("reward.python ", printable(python, 200))
                         : str("reward.command ", printable(command, 200));
}

void RewardConfig::validate() const {
  Refusals refuse(ErrorKind::config);
  if (correct <= wrong) refuse(str("reward.correct = ", correct, " must be larger than reward.wrong = ", wrong));
  refuse.attempt([&] { parse_graders(graders, "reward.graders"); });
  std::vector<WeightedPart> parts;
  refuse.attempt([&] { parts = parse_reward_weights(weights, from_outside()); });
  if (parts.empty()) return refuse.finish();
  const auto weighs = [&](RewardPart part) {
    return std::ranges::find(parts, part, &WeightedPart::part) != parts.end();
  };
  if (!command.empty() && !python.empty())
    refuse("reward.command and reward.python are both given: choose one of them");
  if (weighs(RewardPart::command) && !from_outside()) {
    refuse("reward.weights names command, but reward.command and reward.python are empty: say which program scores");
  }
  if (!weighs(RewardPart::command) && from_outside()) {
    refuse(str(command.empty() ? "reward.python" : "reward.command",
               " is given, but reward.weights has no part for it: add \"command=1\""));
  }
  if (weighs(RewardPart::format) == format.empty()) {
    refuse(format.empty() ? "reward.weights names format, but reward.format is empty: say which pattern, for instance "
                            "think_answer"
                          : "reward.format is given, but reward.weights has no part for it: add \"answer=1\" and "
                            "\"format=0.2\"");
  }
  refuse.finish();
}

}  // namespace ucas

#include "train/collect/training_set.h"

#include <utility>

#include "base/str.h"
#include "base/terminal/log.h"
#include "config/policy_options.h"

namespace ucas {

namespace {

std::string hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

TrainingSet load_set(const TrainConfig& config, const std::vector<std::string>& files, const Tokenizer& tokenizer,
                     const Template& form, const ProblemOptions& options) {
  std::vector<Problem> problems = read_problems(files, options);
  TrainingSet set;
  set.hash = hex(content_hash(problems));
  PreparedPrompts prompts = prepare_prompts(form, problems, tokenizer, config.data.max_prompt_length);
  set.dropped = prompts.dropped;
  set.prompt = std::move(prompts.ids);
  for (int64_t index : prompts.problem) set.problems.push_back(std::move(problems[index]));
  if (set.dropped > 0) {
    count_warning(Warning::prompt, set.dropped);
    warn(str(set.dropped, " of ", set.dropped + set.size(),
             " prompts are longer than data.max_prompt_length = ", config.data.max_prompt_length, " tokens: left out"));
  }
  return set;
}

}  // namespace

ProblemOptions problem_options(const TrainConfig& config) {
  ProblemOptions options;
  options.columns = config.data.columns;
  options.bad_rows = config.data.skip_bad_rows ? BadRows::skip : BadRows::stop;
  return options;
}

TrainingSet load_training_problems(const TrainConfig& config, const Tokenizer& tokenizer, const Template& form) {
  ProblemOptions options = problem_options(config);
  options.labels = config.needs().labels && !config.reward.from_outside();
  return load_set(config, config.data.files, tokenizer, form, options);
}

TrainingSet load_validation_problems(const TrainConfig& config, const Tokenizer& tokenizer, const Template& form) {
  if (config.data.val_files.empty()) return {};
  ProblemOptions options = problem_options(config);
  options.columns_where_there = true;  // those may have the usual names
  options.labels = true;
  return load_set(config, config.data.val_files, tokenizer, form, options);
}

void decide_extract(TrainConfig& config, const std::string& asked_template, const Template& form,
                    std::span<const Problem> problems) {
  PromptChoice choice{asked_template, config.data.prompt_template, config.reward.extract};
  choice.extract = choose_extract(config.reward.extract, form, problems, config.reward.grader);
  choice.boxed = choice.asked_extract == ExtractOption::automatic && asks_for_box(form, problems);
  config.reward.extract = option_of(choice.extract);
  if (const std::string words = choice.in_words(); !words.empty()) log(words);
}

}  // namespace ucas

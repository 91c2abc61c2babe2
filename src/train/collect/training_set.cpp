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

}  // namespace

ProblemOptions problem_options(const TrainConfig& config, bool validation) {
  ProblemOptions options;
  options.columns = config.data.columns;
  options.columns_where_there = validation;  // those may have the usual names
  options.bad_rows = config.data.skip_bad_rows ? BadRows::skip : BadRows::stop;
  options.labels = (validation || config.needs().labels) && !config.reward.from_outside();
  return options;
}

TrainingSet load_problems(const TrainConfig& config, const Tokenizer& tokenizer, const Template& form, bool validation,
                          bool with_rows) {
  const std::vector<std::string>& files = validation ? config.data.val_files : config.data.files;
  if (validation && files.empty()) return {};
  with_rows = with_rows && config.reward.asks_rows();
  std::vector<std::string> rows;
  std::vector<Problem> problems =
      read_problems(files, problem_options(config, validation), with_rows ? &rows : nullptr);
  TrainingSet set;
  set.hash = hex(content_hash(problems));
  PreparedPrompts prompts = prepare_prompts(form, problems, tokenizer, config.data.max_prompt_length);
  set.dropped = prompts.dropped;
  set.prompt = std::move(prompts.ids);
  for (int64_t index : prompts.problem) {
    set.problems.push_back(std::move(problems[index]));
    if (with_rows) set.row.push_back(std::move(rows[index]));
  }
  if (set.dropped > 0) {
    count_warning(Warning::prompt, set.dropped);
    warn(str(set.dropped, " of ", set.dropped + set.size(),
             " prompts are longer than data.max_prompt_length = ", config.data.max_prompt_length, " tokens: left out"));
  }
  return set;
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

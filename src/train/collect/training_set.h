// The problems of a run, those that it trains on and those that it validates on, as they are read from its files.
// Fed by data/problems and data/prompts/templates; nothing here is random.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/verdict.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

// The problems whose prompts fit, with their token ids.
struct TrainingSet {
  std::vector<Problem> problems;
  std::vector<std::vector<int32_t>> prompt;  // ids, same order
  std::vector<std::string> row;              // of the data, as JSON, same order; of a reward that receives them
  int64_t dropped = 0;                       // too long
  std::string hash = std::string(16, '0');   // of the data, for resume
  int64_t size() const { return static_cast<int64_t>(problems.size()); }
  const std::string* row_of(size_t problem) const { return row.empty() ? nullptr : &row[problem]; }
};

// How the problem files of a run are read: data.files, or data.val_files.
ProblemOptions problem_options(const TrainConfig& config, bool validation);
// Of these; a warning counts the prompts that are too long. `with_rows`: with their rows, if the reward receives rows.
TrainingSet load_problems(const TrainConfig& config, const Tokenizer& tokenizer, const Template& form, bool validation,
                          bool with_rows);

// What reward.extract was left to, once the prompts are known; what was decided is in the config from then on.
// `asked_template`: data.template before it was chosen.
void decide_extract(TrainConfig& config, const std::string& asked_template, const Template& form,
                    std::span<const Problem> problems);

}  // namespace ucas

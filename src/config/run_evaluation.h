// How a training puts questions to its model and grades the answers in its validation, as options of `ucas evaluate`:
// what the line that a training prints at its end holds, and what `ucas evaluate RUN` takes from the run's config.toml.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "config/policy_options.h"
#include "config/train_config.h"

namespace ucas {

// The options under which an evaluation grades as the run's validation does: template, few_shot, shots, stop, extract,
// grader, graders, truncated, max_tokens, dtype, code; data, limit and columns of its validation files.
EvaluateOptions evaluation_of(const TrainConfig& config);

// Those of them that differ from the defaults of `ucas evaluate`, as words of a command line.
std::vector<Setting> evaluation_settings(const TrainConfig& config);

// "ucas evaluate MODEL --data .. --template .. --extract ..", for a shell.
std::string evaluate_line(const TrainConfig& config, const std::string& model);

// A word as a shell reads it back.
std::string shell_word(const std::string& word);

// The run that a path belongs to: itself, or that of RUN/checkpoints/step-N; "" where there is none.
std::string run_of_model(const std::string& path);

}  // namespace ucas

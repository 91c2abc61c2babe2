// What `ucas evaluate` evaluates: DIR or LABEL=DIR on the command line, and files of responses. LibTorch-free.
#pragma once

#include <string>
#include <vector>

#include "base/text/fields.h"
#include "config/policy_options.h"
#include "evaluate/benchmark.h"

namespace ucas {

// "LABEL=DIR" is a label where no slash stands before the "=" and there is no directory of the whole name.
// Without a label it comes from the path: its last part, or the run and the step of a checkpoint of a run.
// `responses`: files of responses, PATH or LABEL=PATH, after the checkpoints.
// Errors: usage (no model), config (a label twice or no file name).
std::vector<EvaluatedModel> read_models(const std::vector<std::string>& positionals,
                                        const std::vector<std::string>& responses);

// What was typed, and the defaults where nothing was.
CommandSettings command_settings(const EvaluateOptions& options, const std::vector<Setting>& typed);

}  // namespace ucas

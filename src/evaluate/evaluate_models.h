// The checkpoints of `ucas evaluate` and what is said of each: DIR or LABEL=DIR on the command line, and
// --model.LABEL.KEY VALUE. LibTorch-free.
#pragma once

#include <string>
#include <vector>

#include "base/text/fields.h"
#include "config/policy_options.h"
#include "evaluate/benchmark.h"

namespace ucas {

// "LABEL=DIR" is a label where no slash stands before the "=" and there is no directory of the whole name.
// Without a label it comes from the path: its last part, or the run and the step of a checkpoint of a run.
// `settings`: those of the command line whose key begins with "model.".
// Errors: usage (no model), config (a label twice or no file name, a setting of no model, an unknown key).
// A path that is an address (http://..) is behind a server; one that begins with "responses:" is a file of responses.
std::vector<ModelSettings> read_models(const std::vector<std::string>& positionals,
                                       const std::vector<Setting>& settings);

// The positionals, then the servers and files of responses that options name.
std::vector<std::string> with_others(std::vector<std::string> positionals, const EvaluateOptions& options);

// Moves the settings whose key begins with "model." out of the line.
std::vector<Setting> take_model_settings(PolicyLine& line);

// What was typed for all models, and the defaults where nothing was.
CommandSettings command_settings(const EvaluateOptions& options, const std::vector<Setting>& typed);

}  // namespace ucas

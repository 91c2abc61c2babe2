// A run as demo and studies see it: trained if it is not, evaluated if it is not. Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/engine/embedded_base.h"
#include "cli/train_progress.h"
#include "evaluate/config.h"
#include "train/config.h"

namespace ucas {

// Trains `config` in `path`, or goes on where an interruption left it, or finds it done. Returns an exit code;
// `checkpoint` is the last one.
struct TrainedRun {
  int code = 0;
  std::string checkpoint;
  int64_t step = 0;
};
TrainedRun train_or_reuse(TrainConfig config, const std::string& path, ProgressMode progress = ProgressMode::automatic);

// On which problems, and how, every model is evaluated.
struct EvaluationPlan {
  std::vector<std::string> files;
  std::string suite, data_directory;  // instead of files
  std::string prompt_template;
  int64_t max_prompt_length = 1024;
  EvalConfig config;
  std::string device = "cpu";
  int64_t threads = 0;
  std::string name = "test";  // RUN/eval/NAME.json
};
// On the embedded task's held-out problems; its template and limits replace those of `config`.
EvaluationPlan embedded_evaluation(const EmbeddedBase& base, const EvalConfig& config);
// Leaves the result in RUN/eval unless it is there. Throws Error("interrupted") when told to stop.
void evaluate_or_reuse(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                       const std::string& label, int64_t step);

}  // namespace ucas

// A run as demo and studies see it: trained if it is not, evaluated if it is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "evaluate/engine/evaluation.h"
#include "progress/train_progress.h"
#include "records/eval_config.h"
#include "study/engine/embedded_base.h"

namespace ucas {

// Trains `config` in `path`, or goes on where an interruption left it, or finds it done. Returns an exit code;
// `checkpoint` is the last one.
struct TrainedRun {
  int code = 0;
  std::string checkpoint;
  int64_t step = 0;
};
TrainedRun train_or_reuse(TrainConfig config, const std::string& path, ProgressMode progress = ProgressMode::automatic);

// On the embedded task's held-out problems; its template and limits replace those of `config`.
EvaluationPlan embedded_evaluation(const EmbeddedBase& base, const EvalConfig& config);

}  // namespace ucas

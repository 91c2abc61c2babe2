// What a demonstration or a study begins from, the embedded task with its warmed-up model or a checkpoint, and a run as
// both see it: made once and reused, trained if it is not, evaluated if it is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/train_config.h"
#include "core/model_options.h"
#include "data/tasks/register_chains.h"
#include "evaluate/engine/evaluation.h"
#include "records/evaluation.h"
#include "report/progress/train_progress.h"

namespace ucas {

constexpr int64_t kEmbeddedResponseLimit = 28;  // at most 22 tokens and the end token
constexpr int64_t kEmbeddedPromptLimit = 32;

struct EmbeddedBase {
  std::string task_directory;   // problems, demonstrations, tokenizer
  std::string model_directory;  // the warmed-up Hugging Face checkpoint
  TaskOptions task;
  std::optional<int64_t> weights_seed;  // of initial weights and warm-up; left out: the task's
  int64_t worked_steps = 608;           // warm-up updates on worked demonstrations
  int64_t mixed_steps = 152;            // then on mostly direct ones
  std::string device = "cpu";
  Dtype dtype = Dtype::f32;
  int64_t threads = 0;

  std::string file(const char* name) const;  // "test.jsonl" in the task's directory
};

// Both say what they reuse.
void make_embedded_task(const EmbeddedBase& base);
void make_embedded_model(const EmbeddedBase& base, ProgressMode progress = ProgressMode::plain);
// RUN/env.json of the untrained base, so that its evaluation is a row of reports.
void write_base_environment(const std::string& run, const EmbeddedBase& base);

// Trains `config` in `path`, or goes on where an interruption left it, or finds it done. Returns an exit code;
// `checkpoint` is the last one.
struct TrainedRun {
  int code = 0;
  std::string checkpoint;
  int64_t step = 0;
};
TrainedRun train_or_reuse(TrainConfig config, const std::string& path, ProgressMode progress = ProgressMode::plain);

// On the embedded task's held-out problems; its template and limits replace those of `config`.
EvaluationPlan embedded_evaluation(const EmbeddedBase& base, const EvalConfig& config);

}  // namespace ucas

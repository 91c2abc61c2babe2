#include "study/engine/runs.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "train/loop/trainer.h"
#include "train/state/checkpoint.h"

namespace ucas {

TrainedRun train_or_reuse(TrainConfig config, const std::string& path, ProgressMode progress) {
  std::string done = path_join(path, "done");  // written once the last step is saved
  if (!exists(done)) {
    Training training =
        exists(path_join(path, "config.toml")) ? resume_training(path, {}) : open_training(std::move(config), path, "");
    std::unique_ptr<TrainObserver> observer = make_train_observer(progress);
    if (int code = Trainer(training).run(*observer); code != kDone) return {code, "", 0};
    write_file(done, str(training.state.step, "\n"));
  } else {
    log(str("reusing ", path));
  }
  int64_t step = std::stoll(read_file(done));
  return {kDone, path_join(path, str("checkpoints/", step_name(step))), step};
}

EvaluationPlan embedded_evaluation(const EmbeddedBase& base, const EvalConfig& config) {
  EvaluationPlan plan;
  plan.files = {base.file("test.jsonl")};
  plan.prompt_template = "plain";
  plan.max_prompt_length = kEmbeddedPromptLimit;
  plan.config = config;
  plan.config.max_tokens = kEmbeddedResponseLimit;
  plan.config.truncated = Truncated::wrong;
  plan.keyed_by_position = true;
  plan.device = base.device;
  plan.threads = base.threads;
  return plan;
}

}  // namespace ucas

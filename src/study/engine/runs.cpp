#include "study/engine/runs.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "records/run/run_directory.h"
#include "rollout/policy.h"
#include "train/loop/trainer.h"
#include "train/sft/sft.h"
#include "train/state/checkpoint.h"

namespace ucas {

namespace {

// For the report's head.
std::string about(const TaskOptions& task) {
  if (task.hidden_rule()) {
    return "Each problem is a chain of definitions such as @7 a3 b*2 c-3 with a rule that is said nowhere; the base "
           "model seldom writes the right one.";
  }
  return "Each problem is a chain of definitions such as a3 b*2 c-3 (a = 3, b = a * 2, c = b - 3) and asks for the "
         "last value. The base model was shown nine answers guessed at once for each one worked out letter by letter; "
         "reinforcement learning finds out that working it out is rewarded.";
}

// Hidden 64, 2 layers, 4 query and 2 key/value heads, tied: 0.1 M parameters.
ModelConfig shape_for(const Tokenizer& tokenizer) {
  ModelConfig shape;
  shape.vocab_size = tokenizer.vocab_size();
  shape.max_position_embeddings = 128;
  shape.eos_token_id = tokenizer.eos_ids();
  return shape;
}

}  // namespace

std::string EmbeddedBase::file(const char* name) const { return path_join(task_directory, name); }

void make_embedded_task(const EmbeddedBase& base) {
  if (exists(base.file("task.toml"))) return log(str("reusing ", base.task_directory));  // its last file
  const TaskOptions& options = base.task;
  int64_t vocabulary = write_register_chains(base.task_directory, options);
  log(str(options.count_train, " training problems, ", options.count_dev, " dev, ", options.count_test,
          " test (disjoint by construction), ", grouped(options.count_worked + options.count_mixed),
          " demonstrations, vocabulary ", vocabulary));
}

void make_embedded_model(const EmbeddedBase& base, ProgressMode progress) {
  if (exists(path_join(base.model_directory, "config.json"))) return log(str("reusing ", base.model_directory));
  use_threads(base.threads);
  const int64_t seed = base.weights_seed.value_or(base.task.seed);
  Tokenizer tokenizer = Tokenizer::load(base.file("tokenizer"));
  std::unique_ptr<Model> model =
      make_model(shape_for(tokenizer), static_cast<uint64_t>(seed), parse_device(base.device), {.dtype = base.dtype});
  SftConfig sft;
  sft.data = {base.file("sft_worked.jsonl"), base.file("sft_mixed.jsonl")};
  sft.steps = {base.worked_steps, base.mixed_steps};
  if (base.worked_steps == 0) {
    sft.data.erase(sft.data.begin());
    sft.steps.erase(sft.steps.begin());
  }
  sft.batch_size = 112;
  sft.seed = seed;
  sft.optimizer.lr = 5e-3;
  sft.optimizer.beta1 = 0.9;
  sft.optimizer.beta2 = 0.98;
  sft.optimizer.weight_decay = 0.01;
  sft.optimizer.decay = Decay::matrices;
  sft.optimizer.grad_clip = 1;
  sft.optimizer.warmup_steps = 40;
  sft.optimizer.schedule = Schedule::cosine;
  sft.optimizer.min_lr_ratio = 0.05;
  run_sft(*model, tokenizer, sft, base.model_directory, *make_train_observer(progress));
}

void write_base_environment(const std::string& run, const EmbeddedBase& base) {
  RunEnvironment environment;
  environment.label = "base";
  environment.version = version_and_commit();
  environment.torch = torch_version();
  environment.device = base.device;
  environment.started = utc_now();
  environment.data = "embedded register chains";
  environment.about = about(base.task);
  environment.parameters = shape_for(Tokenizer::load(base.file("tokenizer"))).parameter_count();
  make_directories(run);
  write_environment(path_join(run, "env.json"), environment);
}

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

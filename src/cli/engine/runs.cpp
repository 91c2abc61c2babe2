#include "cli/engine/runs.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "data/problems.h"
#include "data/templates.h"
#include "evaluate/evaluator.h"
#include "rollout/engine.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace ucas {

TrainedRun train_or_reuse(TrainConfig config, const std::string& path, ProgressMode progress) {
  std::string done = path_join(path, "done");  // written once the last step is saved
  if (!exists(done)) {
    Training training =
        exists(path_join(path, "config.toml")) ? resume_training(path, {}) : open_training(std::move(config), path);
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
  plan.config.truncated = EvalConfig::Truncated::wrong;
  plan.device = base.device;
  plan.threads = base.threads;
  return plan;
}

void evaluate_or_reuse(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                       const std::string& label, int64_t step) {
  if (exists(path_join(run, str("eval/", plan.name, ".json")))) return;
  use_threads(plan.threads);
  Policy policy = open_policy(model, parse_device(plan.device));
  std::unique_ptr<Rollout> rollout = make_engine(*policy.model);
  std::unique_ptr<Verifier> verifier = make_math_verifier(Extract::strict);
  std::vector<Problem> problems = read_problems(plan.files);
  Template form = load_template(plan.prompt_template);
  PreparedPrompts prompts = prepare_prompts(form, problems, policy.tokenizer, plan.max_prompt_length);
  std::vector<Problem> asked;
  for (int64_t index : prompts.problem) asked.push_back(problems[static_cast<size_t>(index)]);
  if (prompts.dropped > 0) warn(str(prompts.dropped, " over-long prompts are left out of the evaluation"));
  EvalInput input;
  input.problems = asked;
  input.prompts = prompts.ids;
  input.stop_ids = collect_stop_ids(policy.model->config(), policy.tokenizer, stop_ids(form, policy.tokenizer));
  input.label = label;
  input.model = model;
  input.step = step;
  input.data = plan.files;
  input.should_stop = stop_requested;
  EvalResult result = evaluate(*rollout, policy.tokenizer, *verifier, input, plan.config);
  if (!result.complete) {
    throw Error("interrupted", "stopped during the evaluation; run the same command to go on", kInterrupted);
  }
  write_result(result, path_join(run, "eval"), plan.name);
  log(str(plan.name, ": greedy ", result.overall.greedy ? percent(result.overall.greedy->value) : "-", ", sampled ",
          result.overall.mean.empty() ? "-" : percent(result.overall.mean.back().estimate.value), ", ",
          fixed(result.overall.length, 1), " tokens"));
}

}  // namespace ucas

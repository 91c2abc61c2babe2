#include "evaluate/engine/evaluation.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "evaluate/engine/evaluator.h"
#include "evaluate/engine/prepared_problems.h"
#include "evaluate/responses_file.h"
#include "hf/model_config.h"
#include "hf/peft.h"
#include "kernels/dispatch.h"
#include "records/evaluation.h"
#include "records/run/run_directory.h"
#include "rollout/environment/environment.h"
#include "rollout/policy.h"
#include "rollout/rollouter.h"
#include "train/update/self_check.h"
#include "verify/registry.h"

namespace ucas {

namespace {

// The weights are read when they are first needed: a complete evaluation is scored again without them.
class LazyEngine final : public Rollouter {
 public:
  LazyEngine(std::string directory, const EvaluationPlan& plan) : directory_(std::move(directory)), plan_(plan) {}
  Model& model() {
    if (!model_) {
      model_ = load_model(directory_, parse_device(plan_.device), inference(plan_.config.dtype));
      require_sound_gpu(*model_);
    }
    return *model_;
  }
  std::vector<Episode> run(const RolloutRequest& request) override {
    return make_engine(model(), plan_.engine)->run(request);
  }

 private:
  std::string directory_;
  const EvaluationPlan& plan_;
  std::unique_ptr<Model> model_;
};

RunEnvironment this_machine(const EvaluationPlan& plan) {
  RunEnvironment machine;
  machine.version = version_and_commit();
  machine.torch = torch_version();
  machine.isa = kernels::isa();
  machine.isa_reason = kernels::isa_reason();
  machine.device = plan.device;
  machine.threads = at::get_num_threads();
  machine.started = utc_now();
  return machine;
}

// Those that decide what the model says: its own, and of an adapter's directory its base's.
std::vector<ModelFile> model_files(const std::string& directory) {
  std::vector<ModelFile> files = hash_model_files(directory);
  const std::string base = base_directory(directory);
  if (!exists(path_join(directory, kAdapterConfig))) return files;
  for (ModelFile& file : hash_model_files(base)) {
    file.name = str("base/", file.name);
    files.push_back(std::move(file));
  }
  return files;
}

std::string hash_of(const std::vector<ModelFile>& files) {
  std::string text;
  for (const ModelFile& file : files) text += str(file.name, " ", file.size, " ", file.sha256, "\n");
  return hash_of_text(text);
}

[[noreturn]] void stopped(const std::string& kept) {
  throw Error(ErrorKind::interrupted,
              kept.empty() ? std::string("stopped during the evaluation; without --out nothing is kept")
                           : str("stopped during the evaluation; the responses so far are in ", kept,
                                 ", the same command resumes it"),
              kInterrupted);
}

// Who answers, and what a run directory keeps of that.
struct Origin {
  ResponseSource& source;
  std::string model;  // directory or file
  std::string hash;   // of what decides the responses
  std::vector<ModelFile> files;
  std::string kind;        // Asked::origin
  int64_t parameters = 0;  // 0: not known
};

// RUN/env.json of a model that was not trained here, unless it is there: so that its evaluation is a row of reports.
void write_evaluated_environment(const EvaluationPlan& plan, const Origin& origin, const std::string& run,
                                 const std::string& label) {
  const std::string file = path_join(run, "env.json");
  remove_leftovers(run, "env.json");  // of one that was killed
  if (exists(file)) return;
  RunEnvironment environment = this_machine(plan);
  environment.label = label;
  environment.model = origin.model;
  environment.data = plan.suite.empty() ? join(plan.files, ", ") : str(plan.suite, ", ", plan.data_directory);
  environment.parameters = origin.parameters;
  if (!origin.kind.empty()) environment.device = origin.kind;
  make_directories(run);
  write_environment(file, environment);
}

OutputSettings output_settings(const EvaluationPlan& plan, const PreparedProblems& prepared, const Origin& origin,
                               const std::string& keys) {
  return {.model = origin.hash,
          .keys = keys,
          .temperature = plan.config.temperature,
          .top_p = plan.config.top_p,
          .min_p = plan.config.min_p,
          .top_k = plan.config.top_k,
          .seed = plan.config.seed,
          .dtype = word_of(plan.config.dtype),
          .environment = plan.environment.some() ? plan.environment.title() : "",
          .max_turns = plan.environment.some() ? plan.environment.max_turns : 0,
          .sources = prepared.settings};
}

// From what is asked and who answers to a result, kept in RUN unless that is "".
EvalRecord evaluate_from(const EvaluationPlan& plan, const PreparedProblems& prepared, const Origin& origin,
                         EvalInput input, const std::string& run) {
  EvalConfig config = plan.config;
  config.max_tokens = prepared.max_tokens;
  input.problems = prepared.problems;
  input.prompts = prepared.prompts;
  input.sources = prepared.sources;
  input.keyed_by_position = plan.keyed_by_position;
  input.model = origin.model;
  input.suite = prepared.suite;
  input.data = prepared.data;
  input.should_stop = stop_requested;
  if (run.empty()) {
    EvalRecord result = evaluate(origin.source, prepared.graders, input, config);
    if (!result.complete) stopped("");
    result.graded_by = prepared.graded_by;
    return result;
  }
  const std::string directory = path_join(run, "eval"), keys = plan.keyed_by_position ? "place" : "problem";
  const std::string file = plan.name + ".outputs.jsonl";
  refuse_links(run, {"eval", path_join("eval", file), path_join("eval", str(".", file, ".lock"))});
  const bool bounded = origin.kind != "file";            // a file's responses need not reach a limit
  if (bounded && !exists(path_join(directory, file))) {  // reported before anything is written
    std::filesystem::path place = std::filesystem::absolute(run);
    while (!exists(place.string()) && place.has_relative_path()) place = place.parent_path();
    input.disk_free = std::max<int64_t>(1, free_space(place.string()));
    check_room(input, config);
  }
  make_directories(directory);
  write_evaluated_environment(plan, origin, run, input.label);
  const std::string outputs = path_join(directory, file);
  OutputJournal journal(outputs, output_settings(plan, prepared, origin, keys));
  for (const char* kind : {".json", ".outputs.json"}) {  // and their .jsonl
    remove_leftovers(directory, plan.name + kind);
  }
  input.journal = &journal;
  if (bounded) input.disk_free = std::max<int64_t>(1, free_space(directory) - file_size(outputs));
  EvalRecord result = evaluate(origin.source, prepared.graders, input, config);
  if (!result.complete) stopped(outputs);
  result.graded_by = prepared.graded_by;
  result.asked = Asked{.version = version(),
                       .grader_version = kGraderVersion,
                       .origin = origin.kind,
                       .keys = keys,
                       .model_files = origin.files,
                       .sets = prepared.asked};
  write_evaluation(result, directory, plan.name);
  return result;
}

EvalRecord evaluate_checkpoint(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                               EvalInput input) {
  use_threads(plan.threads);
  const Tokenizer tokenizer = Tokenizer::load(directory_with(model, "tokenizer.json"));
  const ModelConfig config = read_model_config(model);
  check_vocabulary(tokenizer, config);
  const PreparedProblems prepared(
      plan, {.tokenizer = &tokenizer, .eos = config.eos_token_id, .positions = config.max_position_embeddings});
  LazyEngine engine(model, plan);
  input.prompts = prepared.prompts;
  input.problems = prepared.problems;
  const std::unique_ptr<Rollouter> with_turns =
      plan.environment.some() ? with_environment(engine, plan.environment, plan.code, tokenizer) : nullptr;
  RolloutSource source(with_turns ? *with_turns : engine, tokenizer, input);
  Origin origin{.source = source, .model = model, .parameters = config.parameter_count()};
  if (!run.empty()) {
    origin.files = model_files(model);
    origin.hash = hash_of(origin.files);
  }
  return evaluate_from(plan, prepared, origin, std::move(input), run);
}

// Returns the responses of the file.
class GivenSource final : public ResponseSource {
 public:
  GivenSource(const GivenResponses& given, const std::vector<size_t>& of, const PreparedProblems& prepared)
      : given_(given), of_(of), asked_(prepared) {}
  void run(const ResponseRequest& request) override {
    for (size_t j = 0; j < request.jobs.size(); ++j) {
      const ResponseJob& job = request.jobs[j];
      const Problem& problem = asked_.problems[job.problem];
      for (int64_t i = 0; i < job.count; ++i) {
        Output output = given_[of_[job.problem]].responses[static_cast<size_t>(job.first + i)];
        output.source = problem.source;
        output.id = problem.id;
        if (job.greedy) output.sample = kGreedySample;
        request.ended(j, std::move(output));
      }
    }
  }

 private:
  const GivenResponses& given_;
  const std::vector<size_t>& of_;
  const PreparedProblems& asked_;
};

EvalRecord evaluate_given(EvaluationPlan plan, const std::string& path, const std::string& run, EvalInput input) {
  const GivenResponses given = read_responses(path);
  const bool own = plan.suite.empty() && plan.files.empty();
  const PreparedProblems prepared(plan, {}, own ? problems_of(given, path) : std::vector<Problem>{});
  const std::vector<size_t> of = match_responses(given, prepared.problems, path);
  // One response a problem is its greedy one, unless somebody says that it was sampled; several are samples.
  int64_t fewest = INT64_MAX, most = 0;
  for (size_t g : of) {
    fewest = std::min(fewest, std::ssize(given[g].responses));
    most = std::max(most, std::ssize(given[g].responses));
  }
  const bool sampled = fewest > 1 || !plan.config.greedy;
  plan.config.greedy = !sampled;
  plan.config.samples = sampled ? fewest : 0;
  plan.config.temperature = plan.config.top_p = 1;  // not known
  plan.config.top_k = 0;
  plan.config.min_p = 0;
  if (fewest != most) {
    warn(str(path, ": problems have ", fewest, " to ", most, " responses; of each the first ", fewest, " count"));
  }
  log(str(path, ": ", grouped(std::ssize(of)), " problems", sampled ? str(", ", fewest, " responses each") : ""));
  GivenSource source(given, of, prepared);
  Origin origin{.source = source, .model = path, .kind = "file"};
  if (!run.empty()) {
    origin.files = {{path, file_size(path), sha256_of_file(path)}};
    origin.hash = hash_of(origin.files);
  }
  input.show_progress = false;
  return evaluate_from(plan, prepared, origin, std::move(input), run);
}

}  // namespace

EvalRecord evaluate_model(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                          const std::string& label, int64_t step) {
  EvalInput input;
  input.label = label;
  input.step = step;
  if (plan.model.is_responses) return evaluate_given(plan, model, run, std::move(input));
  return evaluate_checkpoint(plan, model, run, std::move(input));
}

void evaluate_or_reuse(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                       const std::string& label, int64_t step) {
  const std::string file = path_join(run, str("eval/", plan.name));
  if (exists(file + ".json")) return;
  const EvalRecord result = evaluate_model(plan, model, run, label, step);
  log(str(plan.name, ": greedy ", result.greedy.known() ? percent(result.greedy.value) : "-", ", sampled ",
          result.mean_at.empty() ? "-" : percent(result.mean_at.back().share.value), ", ", fixed(result.length, 1),
          " tokens"));
}

}  // namespace ucas

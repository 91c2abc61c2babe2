#include "evaluate/engine/evaluation.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/build_info.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "data/templates.h"
#include "evaluate/engine/choices.h"
#include "evaluate/engine/evaluator.h"
#include "hf/adapter.h"
#include "hf/model_config.h"
#include "kernels/dispatch.h"
#include "records/card.h"
#include "records/run_directory.h"
#include "rollout/engine.h"
#include "rollout/policy.h"

namespace ucas {

namespace {

// The weights are read when they are first needed: a complete evaluation is scored again without them.
class LazyEngine final : public Rollout {
 public:
  LazyEngine(std::string directory, const EvaluationPlan& plan) : directory_(std::move(directory)), plan_(plan) {}
  Model& model() {
    if (!model_) model_ = load_model(directory_, parse_device(plan_.device), inference(plan_.config.dtype));
    return *model_;
  }
  std::vector<Sampled> run(const RolloutRequest& request) override {
    return make_engine(model(), plan_.engine)->run(request);
  }

 private:
  std::string directory_;
  const EvaluationPlan& plan_;
  std::unique_ptr<Model> model_;
};

// The problems as one model is asked them.
class Asked {
 public:
  Asked(const EvaluationPlan& plan, const std::string& model);

  Tokenizer tokenizer;
  std::vector<Problem> problems;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<EvalSource> sources;
  std::vector<CardBenchmark> card;
  std::vector<OutputSettings::Source> settings;
  std::vector<std::string> data;
  std::string suite;  // its name
  Graders graders;
  int64_t max_tokens = 0;  // the longest of the sets'

 private:
  void add_suite();
  void add_files();
  void add(std::vector<Problem> asked, const Benchmark& benchmark, const PutToModel& put,
           const std::vector<std::string>& files);
  int64_t longest_prompt(int64_t max_tokens) const;
  CommandSettings command() const {
    CommandSettings out = plan_.typed;
    if (!plan_.prompt_template.empty()) out.default_template = plan_.prompt_template;
    out.default_max_tokens = plan_.config.max_tokens;
    return out;
  }

  const EvaluationPlan& plan_;
  ModelConfig config_;
};

Asked::Asked(const EvaluationPlan& plan, const std::string& model)
    : tokenizer(Tokenizer::load(directory_with(model, "tokenizer.json"))),
      plan_(plan),
      config_(read_model_config(model)) {
  check_vocabulary(tokenizer, config_);
  if (plan.suite.empty()) {
    add_files();
  } else {
    add_suite();
  }
}

void Asked::add_suite() {
  const Suite suite = load_suite(plan_.suite);
  this->suite = suite.name;
  data = {suite.name};
  for (const Benchmark& benchmark : suite.benchmarks) {
    std::vector<Problem> all = read_benchmark(benchmark, plan_.data_directory);
    if (plan_.limit > 0 && static_cast<int64_t>(all.size()) > plan_.limit) all.resize(static_cast<size_t>(plan_.limit));
    const PutToModel put = put_to_model(plan_.model, command(), benchmark, suite);
    graders.of[benchmark.name] = make_grader(benchmark.grader, put.extract);
    add(std::move(all), benchmark, put, {path_join(plan_.data_directory, benchmark.path)});
  }
}

void Asked::add_files() {
  const PutToModel put = put_to_model(plan_.model, command(), Benchmark(), Suite());
  graders.standard = make_grader(GraderKind::math, put.extract);
  std::vector<std::string> order;  // of the sources
  std::map<std::string, std::vector<Problem>> by_source;
  std::map<std::string, std::vector<std::string>> files;  // that hold problems of a source
  std::set<std::pair<std::string, std::string>> seen;
  int64_t left = plan_.limit > 0 ? plan_.limit : INT64_MAX;
  for (const std::string& file : plan_.files) {
    data.push_back(std::filesystem::path(file).stem().string());
    for (Problem& problem : read_problems({file}, plan_.problems)) {
      if (left-- <= 0) break;
      // Responses are found by source and id.
      const std::string id = problem.id;
      for (int64_t n = 2; !seen.insert({problem.source, problem.id}).second; ++n) problem.id = str(id, "#", n);
      if (!by_source.contains(problem.source)) order.push_back(problem.source);
      auto& mine = files[problem.source];
      if (mine.empty() || mine.back() != file) mine.push_back(file);
      by_source[problem.source].push_back(std::move(problem));
    }
  }
  for (const std::string& source : order) {
    Benchmark benchmark;
    benchmark.name = source;
    add(std::move(by_source[source]), benchmark, put, files[source]);
  }
}

int64_t Asked::longest_prompt(int64_t limit) const {
  const int64_t room = config_.max_position_embeddings - limit;
  if (room < 1) {
    throw Error("config",
                str("max_tokens = ", limit, " leaves no room for a prompt: the model has ",
                    config_.max_position_embeddings, " positions (max_position_embeddings); lower max_tokens"));
  }
  const int64_t longest = config_.max_position_embeddings - 1;  // a response has one token at least
  return plan_.max_prompt_length > 0 ? std::min(plan_.max_prompt_length, longest) : longest;
}

void Asked::add(std::vector<Problem> asked, const Benchmark& benchmark, const PutToModel& put,
                const std::vector<std::string>& files) {
  const bool choices = benchmark.grader == GraderKind::choice;
  const Template form = load_template(put.prompt_template);
  CardBenchmark as;
  as.form = form;
  EvalSource source;
  source.name = benchmark.name;
  std::vector<int32_t> stops = stop_ids(form, tokenizer);
  const std::vector<int32_t> more = stop_tokens(put.stop, tokenizer);
  stops.insert(stops.end(), more.begin(), more.end());
  source.stop_ids = collect_stop_ids(config_, tokenizer, stops);
  source.max_tokens = put.max_tokens;
  source.choices = choices;
  const int64_t longest = longest_prompt(choices ? 1 : put.max_tokens);
  PreparedPrompts prepared = prepare_prompts(form, asked, tokenizer, longest);
  if (prepared.dropped > 0) {
    warn(str(benchmark.name, ": ", prepared.dropped, " of ", asked.size(), " prompts left out: empty, or longer than ",
             longest, " tokens; the figures are of the others"));
  }
  const int64_t positions = config_.max_position_embeddings;
  std::string text;  // of what is asked
  for (size_t i = 0; i < prepared.problem.size(); ++i) {
    Problem& problem = asked[static_cast<size_t>(prepared.problem[i])];
    text += str(problem.id, "\n");
    for (int32_t id : prepared.ids[i]) text += str(id, " ");
    text += "\n";
    const int64_t room = positions - static_cast<int64_t>(prepared.ids[i].size());
    if (!choices && room < put.max_tokens) source.max_tokens_of[problem.id] = room;
    problems.push_back(std::move(problem));
    prompts.push_back(std::move(prepared.ids[i]));
  }
  if (!source.max_tokens_of.empty()) {
    warn(str(benchmark.name, ": ", source.max_tokens_of.size(), " of ", asked.size(), " prompts leave fewer than ",
             put.max_tokens, " of the model's ", positions, " positions: their responses are cut where those end"));
  }
  settings.push_back(
      {benchmark.name, put.prompt_template, hash_of_text(text), source.stop_ids, put.max_tokens, choices});
  as.name = benchmark.name;
  as.title = benchmark.title;
  as.files = files;
  as.columns = benchmark.columns;
  as.stop_ids = source.stop_ids;
  for (int32_t id : source.stop_ids) as.stop_texts.push_back(tokenizer.decode({&id, 1}, false));
  as.max_tokens = put.max_tokens;
  as.max_tokens_of = source.max_tokens_of;
  as.grader = name_of(benchmark.grader);
  as.extract = put.extract;
  card.push_back(std::move(as));
  sources.push_back(std::move(source));
  max_tokens = std::max(max_tokens, put.max_tokens);
}

RunEnvironment this_machine(const EvaluationPlan& plan) {
  RunEnvironment machine;
  machine.version = version();
  machine.torch = torch_version();
  machine.isa = kernels::isa();
  machine.isa_reason = kernels::isa_reason();
  machine.device = plan.device;
  machine.threads = at::get_num_threads();
  machine.started = utc_now();
  return machine;
}

// Those that decide what the model says: its own, and of an adapter's directory its base's.
std::vector<CardFile> model_files(const std::string& directory) {
  std::vector<CardFile> files = hash_model_files(directory);
  const std::string base = base_directory(directory);
  if (!exists(path_join(directory, kAdapterConfig))) return files;
  for (CardFile& file : hash_model_files(base)) {
    file.name = str("base/", file.name);
    files.push_back(std::move(file));
  }
  return files;
}

std::string hash_of(const std::vector<CardFile>& files) {
  std::string text;
  for (const CardFile& file : files) text += str(file.name, " ", file.size, " ", file.sha256, "\n");
  return hash_of_text(text);
}

// RUN/env.json of a model that was not trained here, unless it is there: so that its evaluation is a row of reports.
void write_evaluated_environment(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                                 const std::string& label) {
  const std::string file = path_join(run, "env.json");
  if (exists(file)) return;
  RunEnvironment environment = this_machine(plan);
  environment.label = label;
  environment.model = model;
  environment.data = plan.suite.empty() ? join(plan.files, ", ") : str(plan.suite, ", ", plan.data_directory);
  environment.parameters = read_model_config(model).parameter_count();
  make_directories(run);
  write_environment(file, environment);
}

[[noreturn]] void stopped(const std::string& kept) {
  throw Error("interrupted",
              kept.empty() ? std::string("stopped during the evaluation; without --out nothing is kept")
                           : str("stopped during the evaluation; the responses so far are in ", kept,
                                 ", the same command goes on"),
              kInterrupted);
}

}  // namespace

EvalRecord evaluate_model(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                          const std::string& label, int64_t step) {
  use_threads(plan.threads);
  const Asked asked(plan, model);
  LazyEngine engine(model, plan);
  EvalConfig config = plan.config;
  config.max_tokens = asked.max_tokens;
  EvalInput input;
  input.problems = asked.problems;
  input.prompts = asked.prompts;
  input.sources = asked.sources;
  input.keyed_by_place = plan.keyed_by_place;
  input.label = label;
  input.model = model;
  input.suite = asked.suite;
  input.step = step;
  input.data = asked.data;
  input.should_stop = stop_requested;
  input.choose = [&](std::span<const size_t> which, const std::function<void(Output)>& ended) {
    compare_choices(engine.model(), asked.tokenizer,
                    {.problems = asked.problems,
                     .prompts = asked.prompts,
                     .which = which,
                     .ended = ended,
                     .should_stop = stop_requested});
  };
  if (run.empty()) {
    EvalRecord result = evaluate(engine, asked.tokenizer, asked.graders, input, config);
    if (!result.complete) stopped("");
    return result;
  }
  const std::string directory = path_join(run, "eval"), keys = plan.keyed_by_place ? "place" : "problem";
  const std::string file = plan.name + ".outputs.jsonl";
  refuse_links(run, {"eval", path_join("eval", file), path_join("eval", str(".", file, ".lock"))});
  make_directories(directory);
  write_evaluated_environment(plan, model, run, label);
  CardInput card{.machine = this_machine(plan),
                 .model = model,
                 .model_files = model_files(model),
                 .suite = asked.suite,
                 .keys = keys,
                 .benchmarks = asked.card};
  const OutputSettings settings{.model = hash_of(card.model_files),
                                .keys = keys,
                                .temperature = config.temperature,
                                .top_p = config.top_p,
                                .top_k = config.top_k,
                                .seed = config.seed,
                                .dtype = word_of(config.dtype),
                                .sources = asked.settings};
  const std::string outputs = path_join(directory, file);
  OutputJournal journal(outputs, settings);
  for (const char* kind : {".json", ".card.json", ".outputs.json"}) {  // and their .jsonl
    remove_leftovers(directory, plan.name + kind);
  }
  input.journal = &journal;
  EvalRecord result = evaluate(engine, asked.tokenizer, asked.graders, input, config);
  if (!result.complete) stopped(outputs);
  write_evaluation(result, directory, plan.name);
  write_card(card, result, asked.problems, directory, plan.name);
  return result;
}

void evaluate_or_reuse(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                       const std::string& label, int64_t step) {
  const std::string file = path_join(run, str("eval/", plan.name));
  // A kill between figures and card leaves the responses: made good in no time.
  if (exists(file + ".json") && (exists(file + ".card.json") || !exists(file + ".outputs.jsonl"))) return;
  const EvalRecord result = evaluate_model(plan, model, run, label, step);
  log(str(plan.name, ": greedy ", result.greedy.known() ? percent(result.greedy.value) : "-", ", sampled ",
          result.mean_at.empty() ? "-" : percent(result.mean_at.back().share.value), ", ", fixed(result.length, 1),
          " tokens"));
}

}  // namespace ucas

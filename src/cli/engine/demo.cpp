// The main job end to end, on the embedded task or with a pretrained model: task -> base -> RLVR per method and seed ->
// evaluation -> report. What differs between the two is virtual.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "cli/options/demo_config.h"
#include "cli/options/train_options.h"
#include "config/config_file.h"
#include "config/train_config.h"
#include "evaluate/engine/evaluation.h"
#include "hf/hub.h"
#include "hf/model_config.h"
#include "records/evaluation.h"
#include "records/run/run_directory.h"
#include "report/progress/train_progress.h"
#include "report/report.h"
#include "report/summary.h"
#include "study/engine/runs.h"

namespace ucas {

namespace {

// Paths of everything that a demonstration writes.
struct DemoPlaces {
  std::string out;
  std::string task() const;
  std::string base() const;  // the run directory of the untrained model
  std::string run(const std::string& method, int64_t seed) const;
  std::string report() const;
};

class Demo {
 public:
  Demo(const DemoOptions& options, ProgressMode progress);
  virtual ~Demo() = default;
  int run();

 protected:
  virtual std::string title() const = 0;       // of the report
  virtual std::string task_stage() const = 0;  // printed before make_task()
  virtual std::string base_stage() const = 0;
  virtual void make_task() = 0;
  // Makes and evaluates the base; returns the run directories that speak for it in the report.
  virtual std::vector<std::string> make_base() = 0;
  virtual TrainConfig train_config(const std::string& method, int64_t seed) const = 0;
  virtual void evaluate(const std::string& run, const std::string& model, const std::string& label, int64_t step) = 0;
  // What is said below the table; `trained`: the run directories of the trainings, `models`: their checkpoints.
  virtual void say_more(const std::vector<std::string>& trained, const std::vector<std::string>& models) const {}
  // The options as a text: results of others must not be mixed in; more seeds or methods may be added.
  virtual std::string options_text() const = 0;

  // What all options_text() leave out.
  static void leave_out_common(DemoOptions& options);

  DemoPlaces places_;
  ProgressMode progress_;

 private:
  void stage(const std::string& what);
  void claim_directory() const;

  DemoOptions options_;
  int64_t stage_ = 0;
};

std::string DemoPlaces::task() const { return path_join(out, "task"); }
std::string DemoPlaces::base() const { return path_join(out, "base"); }
std::string DemoPlaces::run(const std::string& method, int64_t seed) const {
  std::string name = method;
  for (char& c : name) c = c == ':' ? '-' : c;
  return path_join(out, str(name, "-seed", seed));
}
std::string DemoPlaces::report() const { return path_join(out, "report.html"); }

Demo::Demo(const DemoOptions& options, ProgressMode progress)
    : places_{options.out}, progress_(progress), options_(options) {}

int Demo::run() {
  double began = now_seconds();
  install_stop_signals();
  claim_directory();
  stage(task_stage());
  make_task();
  stage(base_stage());
  std::vector<std::string> runs = make_base(), trained, models;
  for (int64_t seed = 0; seed < options_.seeds; ++seed) {
    for (const std::string& method : options_.methods) {
      stage(str("RLVR: ", method, ", seed ", seed));
      const std::string place = places_.run(method, seed);
      const TrainedRun run = train_or_reuse(train_config(method, seed), place, progress_);
      if (run.code != kDone) return run.code;
      evaluate(place, run.checkpoint, method, run.step);
      runs.push_back(place);
      trained.push_back(place);
      models.push_back(run.checkpoint);
    }
  }
  stage("Report");
  write_report(runs, places_.report(), title());
  out(str("\n", summary_table(runs, output_width())));
  say_more(trained, models);
  out(str("\nreport  ", places_.report(), "\ntook    ", human_seconds(now_seconds() - began), "\n"));
  return kDone;
}

void Demo::stage(const std::string& what) {
  log(str("\n[", ++stage_, "/", 3 + options_.seeds * static_cast<int64_t>(options_.methods.size()), "] ", what));
}

void Demo::claim_directory() const {
  const std::string mine = str("# ucas ", version(), " demo\n", options_text());
  const std::string file = path_join(places_.out, "demo.toml");
  if (exists(file) && read_file(file) != mine) {
    throw Error(ErrorKind::config,
                str(file, ": this directory holds a demo with other options; remove it or choose another --out"));
  }
  make_directories(places_.out);
  if (!exists(file)) write_file(file, mine);
}

void Demo::leave_out_common(DemoOptions& options) {
  options.seeds = 1;
  options.methods = {};
  options.threads = 0;
  options.out = "";
}

// Five rules that the base uses alike, while half of the training problems ask for the first: what becomes of the
// others distinguishes methods after a minute (docs/studies/exploration.md).
const HiddenRule kDemoRules = {.markers = {10, 4, 3, 2, 1}};

// A 0.1 M parameter model, warmed up here.
class EmbeddedDemo final : public Demo {
 public:
  EmbeddedDemo(const DemoConfig& config, ProgressMode progress) : Demo(config, progress), config_(config) {}

 private:
  std::string title() const override { return "ucas demo: what becomes of right strategies that are rarely asked for"; }
  std::string task_stage() const override {
    return "The task: chains of definitions behind a marker that decides what is asked for";
  }
  std::string base_stage() const override { return "Warm-up: a Qwen2 model from scratch, by supervised fine-tuning"; }
  void make_task() override { make_embedded_task(embedded_base()); }

  std::vector<std::string> make_base() override {
    make_embedded_model(embedded_base(), progress_);
    write_base_environment(places_.base(), embedded_base());
    evaluate(places_.base(), base_model(), "base", -1);
    return {places_.base()};
  }

  TrainConfig train_config(const std::string& method, int64_t seed) const override {
    std::vector<Setting> settings = read_config_file(method + "-tiny");
    auto set = [&](const char* key, const std::string& value) { settings.push_back({key, value, "demo", true}); };
    set("model", base_model());
    set("data.files", path_join(places_.task(), "train.jsonl"));
    set("data.val_files", path_join(places_.task(), "dev.jsonl"));
    set("seed", str(seed));
    set("device", config_.device);
    set("dtype", word_of(config_.dtype));
    set("threads", str(config_.threads));
    set("train.steps", str(config_.steps));
    return make_train_config(settings);
  }

  void evaluate(const std::string& run, const std::string& model, const std::string& label, int64_t step) override {
    EvalConfig config;
    config.samples = config_.test_samples;
    config.dtype = config_.dtype;
    evaluate_or_reuse(embedded_evaluation(embedded_base(), config), model, run, label, step);
  }

  std::string options_text() const override {
    DemoConfig same = config_;
    leave_out_common(same);
    return to_toml(same);
  }

  std::string base_model() const { return path_join(places_.base(), "model"); }

  EmbeddedBase embedded_base() const {
    EmbeddedBase base;
    base.task_directory = places_.task();
    base.model_directory = base_model();
    base.task = options_of(TaskKind::hidden_rule);
    base.task.hidden = kDemoRules;
    base.task.balanced = false;
    base.task.seed = config_.sft_seed;
    base.task.count_test = config_.test_problems;
    base.worked_steps = config_.sft_worked_steps;
    base.mixed_steps = config_.sft_mixed_steps;
    base.device = config_.device;
    base.dtype = config_.dtype;
    base.threads = config_.threads;
    return base;
  }

  DemoConfig config_;
};

// ------------------------------------------------------------------------------------------ with a pretrained model

// A task in English, how much of it the base solves already, RLVR, and what is brevity of what is won.
constexpr int64_t kRateProblems = 24, kRateSamples = 8;  // as many samples as a group of training has
constexpr int64_t kControlTokens = 256;                  // of a second evaluation of the base
constexpr double kQuickFrom = 0.15, kQuickUntil = 0.6;   // of samples right: where RLVR learns quickest
constexpr const char* kEvaluation = "test";              // RUN/eval/test.json

class PretrainedDemo final : public Demo {
 public:
  PretrainedDemo(const PretrainedDemoConfig& config, ProgressMode progress) : Demo(config, progress), config_(config) {
    resolve_hub_names(config_);
    read_model_config(config_.model);  // a wrong path is reported before the work
    for (const std::string& method : config_.methods) train_config(method, 0);
  }

 private:
  std::string title() const override {
    return str("ucas demo: ", short_path(config_.model, 1), ", ", word_of(config_.task));
  }
  std::string task_stage() const override {
    return str("The task: ", word_of(config_.task), ", difficulty ", config_.difficulty, ": ", about(config_.task));
  }
  std::string base_stage() const override { return str("The base: ", config_.model); }

  void make_task() override {
    if (exists(path_join(places_.task(), "task.toml"))) return log(str("reusing ", places_.task()));
    const TextTaskOptions options{
        .difficulty = config_.difficulty, .seed = config_.task_seed, .count_test = config_.test_problems};
    write_text_task(places_.task(), config_.task, options);
    log(str(options.count_train, " training problems, ", options.count_dev, " dev, ", options.count_test,
            " test: no form of a question and no numbers are in two of them"));
    const TextProblem first = sample_problems(config_.task, options, Split::train, 1).front();
    log(str("for instance: ", first.text, " (", first.answer, ")"));
  }

  std::vector<std::string> make_base() override {
    look_at_rate();
    describe_base(places_.base());
    evaluate(places_.base(), config_.model, "base", -1);
    if (kControlTokens <= config_.max_tokens) return {places_.base()};
    // How much of what is won is that answers end in time: the base with room for all that it wants to say.
    EvaluationPlan plan = evaluation("test.jsonl");
    plan.config.max_tokens = kControlTokens;
    plan.config.samples = 0;
    describe_base(control());
    evaluate_or_reuse(plan, config_.model, control(), control_label(), -1);
    return {places_.base(), control()};
  }

  TrainConfig train_config(const std::string& method, int64_t seed) const override {
    std::vector<Setting> settings = read_config_file("demo-pretrained");
    auto set = [&](const char* key, const std::string& value) { settings.push_back({key, value, "demo", true}); };
    const size_t colon = method.find(':');
    set("method.name", method.substr(0, colon));
    if (colon != std::string::npos) set("method.preset", method.substr(colon + 1));
    set("model", config_.model);
    set("data.files", path_join(places_.task(), "train.jsonl"));
    set("data.val_files", path_join(places_.task(), "dev.jsonl"));
    if (config_.shots > 0) {
      set("data.few_shot", path_join(places_.task(), "shots.jsonl"));
      set("data.shots", str(config_.shots));
    }
    set("reward.grader", grader_of(config_.task));
    set("rollout.response_length", str(config_.max_tokens));
    set("seed", str(seed));
    set("device", config_.device);
    set("dtype", word_of(config_.dtype));
    set("threads", str(config_.threads));
    set("train.steps", str(config_.steps));
    set("train.test_freq", str(std::max<int64_t>(1, (config_.steps + 1) / 2)));
    if (config_.lora > 0) {
      set("lora.rank", str(config_.lora));
      set("optimizer.lr", "2e-4");
    }
    return make_train_config(settings);
  }

  void evaluate(const std::string& run, const std::string& model, const std::string& label, int64_t step) override {
    evaluate_or_reuse(evaluation("test.jsonl"), model, run, label, step);
  }

  std::string options_text() const override {
    PretrainedDemoConfig same = config_;
    leave_out_common(same);
    return to_toml(same);
  }

  void say_more(const std::vector<std::string>& trained, const std::vector<std::string>& models) const override {
    if (trained.empty()) return;
    std::vector<std::string> missing, remarks;
    const EvalRecord before = read_evaluation(path_join(places_.base(), "eval"), kEvaluation, missing, remarks);
    const EvalRecord after = read_evaluation(path_join(trained[0], "eval"), kEvaluation, missing, remarks);
    out(before_and_after(before, after));
    out(str("\nmodel   ", models[0], "\n        transformers loads it: AutoModelForCausalLM.from_pretrained(\"",
            models[0], "\")\n"));
  }

  // One problem that the base has wrong and the trained model right.
  static std::string before_and_after(const EvalRecord& before, const EvalRecord& after) {
    for (const ProblemRow& row : before.rows) {
      if (!row.greedy || row.greedy->right()) continue;
      const auto same = std::ranges::find(after.rows, row.id, &ProblemRow::id);
      if (same == after.rows.end() || !same->greedy || !same->greedy->right()) continue;
      const auto quoted = [](const std::string& text) { return printable(std::string(trim(text)), 300); };
      return str("\n", quoted(row.problem), "\n  base     ", quoted(row.greedy->response), "\n  trained  ",
                 quoted(same->greedy->response), "\n");
    }
    return "";
  }

  EvaluationPlan evaluation(const char* file) const {
    EvaluationPlan plan;
    plan.files = {path_join(places_.task(), file)};
    plan.prompt_template = "chat";
    if (config_.shots > 0) plan.examples = {path_join(places_.task(), "shots.jsonl"), config_.shots};
    plan.keyed_by_position = true;
    plan.config.samples = config_.test_samples;
    plan.config.max_tokens = config_.max_tokens;
    plan.config.truncated = Truncated::wrong;
    plan.config.dtype = config_.dtype;
    plan.typed.extract = Extract::lenient;
    plan.grader = grader();
    plan.device = config_.device;
    plan.threads = config_.threads;
    plan.name = kEvaluation;
    return plan;
  }

  GraderKind grader() const {
    const auto known = names(GraderKind{});
    const std::string name = grader_of(config_.task);
    return static_cast<GraderKind>(std::ranges::find(known, name, [](const char* n) { return std::string(n); }) -
                                   known.begin());
  }

  std::string control() const { return path_join(places_.out, str("base-", kControlTokens, "-tokens")); }
  std::string control_label() const { return str("base, ", kControlTokens, " tokens"); }

  // So that an evaluation of the base is a row of the report, with what is to be known of it.
  void describe_base(const std::string& run) const {
    RunEnvironment environment;
    environment.label = run == control() ? control_label() : "base";
    environment.version = version_and_commit();
    environment.torch = torch_version();
    environment.device = config_.device;
    environment.started = utc_now();
    environment.model = config_.model;
    environment.data = str(word_of(config_.task), ", difficulty ", config_.difficulty);
    environment.about =
        str("The base is ", short_path(config_.model, 1), "; the task is ", word_of(config_.task),
            ", made by a program: ", about(config_.task),
            ". Held-out problems share neither the form of a question nor its numbers with those of training. Every "
            "response has ",
            config_.max_tokens, " tokens; with ", kControlTokens,
            " the base says all that it wants to say, so that the difference to that row is not brevity.");
    environment.parameters = read_model_config(config_.model).parameter_count();
    make_directories(run);
    write_environment(path_join(run, "env.json"), environment);
  }

  // Before anything trains: how many samples to training problems are right. Where none is, or all are, no group has
  // anything to compare.
  void look_at_rate() const {
    EvaluationPlan plan = evaluation("train.jsonl");
    plan.limit = kRateProblems;
    plan.config.greedy = false;
    plan.config.samples = kRateSamples;
    plan.config.ks = {1, kRateSamples};
    const EvalRecord seen = evaluate_model(plan, config_.model, path_join(places_.out, "rate"), "base");
    int64_t mixed = 0, right = 0;
    for (const ProblemRow& row : seen.rows) {
      mixed += row.correct > 0 && row.correct < row.samples;
      right += row.correct;
    }
    const double share = static_cast<double>(right) / static_cast<double>(seen.problems * kRateSamples);
    const Figure figure = seen.mean_at.empty() ? Figure{} : seen.mean_at.back().share;
    const std::string said =
        str("the base solves ", percent(share), " of ", seen.problems * kRateSamples, " samples to training problems",
            figure.bounded() ? str(" (95 % interval ", percent(figure.low), " to ", percent(figure.high), ")") : "",
            "; ", mixed, " of ", seen.problems, " groups of ", kRateSamples, " hold right and wrong ones");
    if (mixed == 0) {
      throw Error(ErrorKind::config,
                  str(said, ": there is nothing to learn from; ",
                      share < 0.5 ? "lower --difficulty, give more --shots or --max_tokens, or choose another --task"
                                  : "raise --difficulty, or choose another --task"));
    }
    log(said);
    if (share >= kQuickFrom && share <= kQuickUntil)
      return log("between 15 and 60 %: RLVR learns quickly from such a task");
    log(share < kQuickFrom
            ? "below 15 %: RLVR may need more steps; an easier task, more --shots or --max_tokens raise it"
            : "above 60 %: there is little to win; a higher --difficulty leaves more");
  }

  PretrainedDemoConfig config_;
};

}  // namespace

int run_demo(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  ProgressMode progress = parse_progress_mode(take_option(line.settings, "progress"));
  if (!line.positionals.empty())
    throw Error(ErrorKind::usage, str("demo takes options only, got ", line.positionals[0]));
  if (std::ranges::find(line.settings, "model", &Setting::key) != line.settings.end()) {
    PretrainedDemoConfig config;
    ucas::apply(config, line.settings);
    config.dtype = decided(config.dtype, config.device);
    return PretrainedDemo(config, progress).run();
  }
  DemoConfig config;
  ucas::apply(config, line.settings);
  config.dtype = decided(config.dtype, config.device);
  return EmbeddedDemo(config, progress).run();
}

}  // namespace ucas

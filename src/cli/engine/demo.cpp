// The main job end to end, on the embedded task or with a pretrained model.
#include "cli/engine/demo.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "config/config_file.h"
#include "report/report.h"
#include "report/summary.h"
#include "study/engine/runs.h"

namespace ucas {

int run_advantages(const Words& words);

namespace {

// Five rules that the base uses alike, while half of the training problems ask for the first: what becomes of the
// others tells methods apart after a minute (docs/studies/exploration.md).
const HiddenRule kDemoRules = {.markers = {10, 4, 3, 2, 1}};

// A 0.1 M parameter model, warmed up here.
class EmbeddedDemo final : public Demo {
 public:
  EmbeddedDemo(const DemoConfig& config, ProgressMode progress) : Demo(config, progress), config_(config) {}

 private:
  std::string title() const override {
    return embedded_base().task.hidden_rule() ? "ucas demo: what becomes of right strategies that are rarely asked for"
                                              : "ucas demo: discovering that working it out pays";
  }
  std::string task_stage() const override {
    return config_.task == TaskKind::hidden_rule
               ? "The task: chains of definitions behind a marker that decides what is asked for"
           : config_.task == TaskKind::hidden_steps
               ? "The task: chains of definitions whose letters each have an operation of their own"
               : "The task: chains of definitions, to be guessed or worked out";
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
    base.task = options_of(config_.task);
    if (config_.task == TaskKind::hidden_rule) {
      base.task.hidden = kDemoRules;
      base.task.balanced = false;
    }
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

// Which demonstration the options ask for.
struct WhichDemo {
  std::string model;
  TaskName task{};
  void fields(Fields& f) {
    f.field("model", model, "");
    f.choice("task", task, "");
  }
};

}  // namespace

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
  compare_methods(runs);
  write_report(runs, places_.report(), title());
  out(str("\n", summary_table(runs, output_width())));
  say_more(trained, models);
  out(str("\nreport  ", places_.report(), "\ntook    ", human_seconds(now_seconds() - began), "\n"));
  return kDone;
}

// What the other methods would have made of the saved steps, for the report's token explorer.
void Demo::compare_methods(const std::vector<std::string>& runs) const {
  for (const std::string& run : runs) {
    if (!exists(path_join(run, "signals"))) continue;
    run_advantages({run, "--method", "grpo,dapo,ucas,ucas:logprob,ucas:released", "--save"});
  }
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

int run_demo(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  ProgressMode progress = parse_progress_mode(take_option(line.settings, "progress"));
  if (!line.positionals.empty())
    throw Error(ErrorKind::usage, str("demo takes options only, got ", line.positionals[0]));
  WhichDemo which;
  ucas::apply(which, line.settings, false);
  const bool typed_task = std::ranges::any_of(line.settings, [](const Setting& s) { return s.key == "task"; });
  if (which.model.empty() && typed_task && text_task(which.task)) {
    throw Error(ErrorKind::usage, str("demo: --task ", word_of(which.task),
                                      " needs --model DIR, a pretrained model; `make ", "demo-real` fetches one"));
  }
  if (!which.model.empty() && typed_task && embedded_task(which.task)) {
    throw Error(ErrorKind::usage, str("demo: --task ", word_of(which.task), " makes its own model; leave --model out"));
  }
  if (!which.model.empty()) {
    PretrainedDemoConfig config;
    ucas::apply(config, line.settings);
    config.dtype = decided(config.dtype, config.device);
    return make_pretrained_demo(config, progress)->run();
  }
  DemoConfig config;
  ucas::apply(config, line.settings);
  config.dtype = decided(config.dtype, config.device);
  return EmbeddedDemo(config, progress).run();
}

}  // namespace ucas

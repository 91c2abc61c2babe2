// The main job end to end: task -> warmed-up base -> RLVR per method and seed -> evaluation -> report.
#include "base/build_info.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "config/demo_config.h"
#include "config/train_options.h"
#include "report/report.h"
#include "report/summary.h"
#include "study/engine/embedded_base.h"
#include "study/engine/runs.h"

namespace ucas {

int run_advantages(const Words& words);

namespace {

// Five rules that the base uses alike, while half of the training problems ask for the first: what becomes of the
// others tells methods apart after a minute (docs/studies/exploration.md).
const HiddenRule kDemoRules = {.markers = {10, 4, 3, 2, 1}};

// Paths of everything the demo writes.
struct Places {
  std::string out;
  std::string task() const { return path_join(out, "task"); }
  std::string base() const { return path_join(out, "base"); }
  std::string base_model() const { return path_join(base(), "model"); }
  std::string run(const std::string& method, int64_t seed) const { return path_join(out, str(method, "-seed", seed)); }
  std::string report() const { return path_join(out, "report.html"); }
};

class Demo {
 public:
  Demo(const DemoConfig& config, ProgressMode progress) : config_(config), places_{config.out}, progress_(progress) {}

  int run() {
    double began = now_seconds();
    install_stop_signals();
    claim_directory();
    stage(config_.task == TaskKind::hidden_rule
              ? "The task: chains of definitions behind a marker that decides what is asked for"
          : config_.task == TaskKind::hidden_steps
              ? "The task: chains of definitions whose letters each have an operation of their own"
              : "The task: chains of definitions, to be guessed or worked out");
    make_embedded_task(embedded_base());
    stage("Warm-up: a Qwen2 model from scratch, by supervised fine-tuning");
    make_embedded_model(embedded_base(), progress_);
    write_base_environment(places_.base(), embedded_base());
    evaluate_into(places_.base(), places_.base_model(), "base", -1);
    std::vector<std::string> runs = {places_.base()};
    for (int64_t seed = 0; seed < config_.seeds; ++seed) {
      for (const std::string& method : config_.methods) {
        stage(str("RLVR: ", method, ", seed ", seed));
        if (int code = train(method, seed); code != kDone) return code;
        runs.push_back(places_.run(method, seed));
      }
    }
    stage("Report");
    compare_methods(runs);
    write_report(runs, places_.report(),
                 embedded_base().task.hidden_rule()
                     ? "ucas demo: what becomes of right strategies that are rarely asked for"
                     : "ucas demo: discovering that working it out pays");
    out(str("\n", summary_table(runs, output_width()), "\nreport  ", places_.report(), "\ntook    ",
            human_seconds(now_seconds() - began), "\n"));
    return kDone;
  }

 private:
  // What the other methods would have made of the saved steps, for the report's token explorer.
  void compare_methods(const std::vector<std::string>& runs) const {
    for (const std::string& run : runs) {
      if (!exists(path_join(run, "signals"))) continue;
      run_advantages({run, "--method", "grpo,dapo,ucas,ucas:logprob,ucas:released", "--save"});
    }
  }

  void stage(const std::string& what) {
    log(str("\n[", ++stage_, "/", 3 + config_.seeds * static_cast<int64_t>(config_.methods.size()), "] ", what));
  }

  // Results of other options must not be mixed in; more seeds or methods may be added.
  void claim_directory() {
    DemoConfig same = config_;
    same.seeds = 1;
    same.methods = {};
    same.threads = 0;
    same.out = "";
    std::string mine = str("# ucas ", version(), " demo\n", to_toml(same)), file = path_join(places_.out, "demo.toml");
    if (exists(file) && read_file(file) != mine) {
      throw Error("config",
                  str(file, ": this directory holds a demo with other options; remove it or choose another --out"));
    }
    make_directories(places_.out);
    if (!exists(file)) write_file(file, mine);
  }

  EmbeddedBase embedded_base() const {
    EmbeddedBase base;
    base.task_directory = places_.task();
    base.model_directory = places_.base_model();
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

  int train(const std::string& method, int64_t seed) {
    TrainedRun run = train_or_reuse(train_config(method, seed), places_.run(method, seed), progress_);
    if (run.code == kDone) evaluate_into(places_.run(method, seed), run.checkpoint, method, run.step);
    return run.code;
  }

  TrainConfig train_config(const std::string& method, int64_t seed) {
    std::vector<Setting> settings = read_config_file(method + "-tiny");
    auto set = [&](const char* key, const std::string& value) { settings.push_back({key, value, "demo", true}); };
    set("model", places_.base_model());
    set("data.files", path_join(places_.task(), "train.jsonl"));
    set("data.val_files", path_join(places_.task(), "dev.jsonl"));
    set("seed", str(seed));
    set("device", config_.device);
    set("dtype", word_of(config_.dtype));
    set("threads", str(config_.threads));
    set("train.steps", str(config_.steps));
    return make_train_config(settings);
  }

  void evaluate_into(const std::string& run, const std::string& model, const std::string& label, int64_t step) {
    EvalConfig config;
    config.samples = config_.test_samples;
    config.dtype = config_.dtype;
    evaluate_or_reuse(embedded_evaluation(embedded_base(), config), model, run, label, step);
  }

  DemoConfig config_;
  Places places_;
  ProgressMode progress_;
  int64_t stage_ = 0;
};

}  // namespace

int run_demo(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  ProgressMode progress = parse_progress_mode(take_option(line.settings, "progress"));
  if (!line.positionals.empty()) throw Error("usage", str("demo takes options only, got ", line.positionals[0]));
  DemoConfig config;
  ucas::apply(config, line.settings);
  return Demo(config, progress).run();
}

}  // namespace ucas

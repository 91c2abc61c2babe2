// Runs a study: base, every run over every seed, evaluation, table and report.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/engine/embedded_base.h"
#include "cli/engine/runs.h"
#include "cli/study_config.h"
#include "report/report.h"
#include "report/summary.h"
#include "report/table_formats.h"
#include "train/trainer.h"

namespace ucas {

namespace {

class StudyRunner {
 public:
  explicit StudyRunner(Study study) : study_(std::move(study)), config_(study_.config) {}

  int run() {
    double began = now_seconds();
    install_stop_signals();
    check_all();
    make_directories(config_.out);
    prepare_base();
    std::vector<std::string> runs = {path_join(config_.out, "base")};
    evaluate_or_reuse(plan_, model_, runs[0], "base", -1);
    for (const StudyRun& run : study_.runs) {
      for (int64_t seed = 0; seed < config_.seeds; ++seed) {
        TrainConfig train = train_config(run, seed);
        std::string path = path_join(config_.out, str(run.name, "-", short_hash(train), "-seed", seed));
        log(str("\n[", ++done_, "/", study_.runs.size() * static_cast<size_t>(config_.seeds), "] ", train.title(),
                ", seed ", seed));
        std::string label = train.title();
        TrainedRun trained = train_or_reuse(std::move(train), path);
        if (trained.code != kDone) return trained.code;
        evaluate_or_reuse(plan_, trained.checkpoint, path, label, trained.step);
        runs.push_back(path);
      }
    }
    write_results(runs);
    out(str("\n", summary_table(runs), "\nresults ", path_join(config_.out, "results.md"), "\nreport  ",
            path_join(config_.out, "report.html"), "\ntook    ", human_seconds(now_seconds() - began), "\n"));
    return kDone;
  }

 private:
  // Every config is read and checked before the first one runs.
  void check_all() {
    for (const StudyRun& run : study_.runs) train_config(run, 0).validate();
  }

  bool embedded_task() const { return config_.base.task != StudyBase::Task::none; }

  EmbeddedBase embedded_base() const {
    EmbeddedBase base;
    base.task_directory = path_join(config_.out, "task");
    base.model_directory = path_join(config_.out, "base/model");
    if (config_.base.task == StudyBase::Task::length_generalisation) base.task = length_generalisation();
    base.task.seed = config_.base.sft_seed;
    base.task.count_test = config_.base.test_problems;
    base.worked_steps = config_.base.sft_worked_steps;
    base.mixed_steps = config_.base.sft_mixed_steps;
    base.device = config_.device;
    base.threads = config_.threads;
    return base;
  }

  // Runs begin from this base and no other: a directory keeps the one it was made with.
  void claim_base() {
    struct Base {
      StudyBase base;
      EvalConfig evaluate;
      void fields(Fields& f) {
        f.section("base", base);
        f.section("evaluate", evaluate);
      }
    };
    std::string mine = to_toml(Base{config_.base, config_.evaluate}), file = path_join(config_.out, "base.toml");
    if (exists(file) && read_file(file) != mine) {
      throw Error("config", str(file,
                                ": this directory holds a study with another base or evaluation; remove it or "
                                "choose another --out"));
    }
    if (!exists(file)) write_file(file, mine);
  }

  void prepare_base() {
    claim_base();
    if (!embedded_task()) {
      plan_.config = config_.evaluate;
      plan_.device = config_.device;
      plan_.threads = config_.threads;
      model_ = config_.base.model;
      plan_.files = config_.base.test;
      TrainConfig first = train_config(study_.runs.front(), 0);
      plan_.prompt_template = first.data.prompt_template;
      plan_.max_prompt_length = first.data.max_prompt_length;
      return;
    }
    EmbeddedBase base = embedded_base();
    log("The embedded task and its warmed-up base");
    make_embedded_task(base);
    make_embedded_model(base);
    write_base_environment(path_join(config_.out, "base"), base);
    model_ = base.model_directory;
    plan_ = embedded_evaluation(base, config_.evaluate);
  }

  TrainConfig train_config(const StudyRun& run, int64_t seed) const {
    std::vector<Setting> settings = read_config_file(run.config);
    settings.insert(settings.end(), run.settings.begin(), run.settings.end());
    auto set = [&](const char* key, const std::string& value) { settings.push_back({key, value, "study", true}); };
    auto set_list = [&](const char* key, const std::vector<std::string>& values) {
      settings.push_back({key, values, "study", false});
    };
    EmbeddedBase base = embedded_base();
    set("model", embedded_task() ? base.model_directory : config_.base.model);
    set_list("data.files", embedded_task() ? std::vector{base.file("train.jsonl")} : config_.base.train);
    set_list("data.val_files", embedded_task() ? std::vector{base.file("dev.jsonl")} : config_.base.val);
    set("seed", str(seed));
    set("device", config_.device);
    set("threads", str(config_.threads));
    return make_train_config(settings);
  }

  // Of everything that decides the result, so that changed settings never meet old runs.
  std::string short_hash(const TrainConfig& train) const {
    static const std::set<std::string> kFree = {"label", "seed", "threads", "model", "data.files", "data.val_files"};
    std::string text;
    for (const FieldValue& field : fields_of(train)) {
      if (!kFree.contains(field.key)) text += str(field.key, "=", field.value, "\n");
    }
    return hash_of_text(text).substr(0, 8);
  }

  void write_results(const std::vector<std::string>& runs) const {
    std::string command = str("ucas study ", study_.name, " --seeds ", config_.seeds);
    for (const auto& [suffix, text] : {std::pair{"md", results_markdown(runs, config_.title, command)},
                                       {"csv", results_csv(runs)},
                                       {"tex", results_tex(runs)}}) {
      write_file(path_join(config_.out, str("results.", suffix)), text);
      if (suffix == std::string("md") && !config_.table.empty()) write_file(config_.table, text);
    }
    write_report(runs, path_join(config_.out, "report.html"), config_.title);
  }

  Study study_;
  const StudyConfig& config_;
  EvaluationPlan plan_;
  std::string model_;
  size_t done_ = 0;
};

}  // namespace

int run_study(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  if (line.positionals.size() != 1) throw Error("usage", "ucas study STUDY.toml [--key value ...]; see --help");
  return StudyRunner(read_study(line.positionals[0], line.settings)).run();
}

}  // namespace ucas

#include "study/engine/plan.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "report/report.h"
#include "study/engine/text_tasks.h"
#include "study/table.h"
#include "study/view.h"

namespace ucas {

namespace {

class StudyRunner {
 public:
  StudyRunner(Study study, Words words) : plan_(std::move(study)), words_(std::move(words)) {}

  int run() {
    const double began = now_seconds();
    make_directories(config().out);
    for (const StudyStart& start : plan_.starts()) prepare(start);
    check_base();
    if (int code = train_all(); code != kDone) return code;
    write_results();
    log(str("took ", human_seconds(now_seconds() - began)));
    return kDone;
  }

  // `id`: ROW/SEED, or base-SEED.
  int run_only(const std::string& id) {
    auto start = std::ranges::find(plan_.starts(), id, [](const StudyStart& each) { return str("base-", each.seed); });
    auto task = std::ranges::find(plan_.tasks(), id, &StudyTask::id);
    if (start == plan_.starts().end() && task == plan_.tasks().end()) {
      throw Error(ErrorKind::config,
                  str("--only ", printable(id), ": expected base-SEED, or a run that --check names"));
    }
    prepare(start == plan_.starts().end() ? plan_.starts()[task->start] : *start);
    return task == plan_.tasks().end() ? kDone : *train_and_evaluate(*task, true);
  }

 private:
  const StudyConfig& config() const { return plan_.config(); }

  // Made once; a second process waits.
  void prepare(const StudyStart& start) const {
    if (!config().base.tasks.empty()) {
      const auto lock = claim(plan_.text_tasks_home(), true);
      make_text_tasks(config().base, plan_.text_tasks_home());
    }
    if (config().base.embedded()) {
      const auto lock = claim(plan_.task_home(), true);
      make_embedded_task(plan_.embedded_base(start));
    }
    const auto lock = claim(start.path, true);
    if (config().base.embedded()) {
      EmbeddedBase base = plan_.embedded_base(start);
      if (!exists(path_join(start.model, "config.json"))) {
        log(str("The embedded task and its warmed-up base", start.label.empty() ? "" : ": " + start.label));
      }
      make_embedded_model(base);
      if (!exists(path_join(start.path, "env.json"))) write_base_environment(start.path, base);
    }
    if (config().base.warm_up > 0) {
      warm_up_base(config().base, plan_.text_tasks_home(), start.model, config().device, plan_.threads());
    }
    for (const StudyBaseRow& row : plan_.base_rows()) {
      if (&plan_.starts()[row.start] != &start) continue;
      make_directories(row.path);
      evaluate_or_reuse(row.evaluation, start.model, row.path, row.row, -1);
    }
  }

  // Of a directory of the pool; nullptr where another process has it, perhaps on another machine, and `wait` is false.
  static std::unique_ptr<FileLock> claim(const std::string& directory, bool wait) {
    make_directories(directory);
    for (bool logged = false;; logged = true) {
      try {
        return std::make_unique<FileLock>(path_join(directory, ".claim"));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::path) throw;
        if (!wait) return nullptr;
        if (!logged) log(str("waiting: ", error.what()));
      }
      if (stop_requested()) throw Error(ErrorKind::interrupted, "stopped while waiting", kInterrupted);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  // Gates of the base alone: where they fail nothing is trained.
  void check_base() const {
    TableOptions options;
    std::ranges::copy_if(plan_.study().gates, std::back_inserter(options.gates), &StudyGate::of_base);
    if (options.gates.empty()) return;
    options.eval = plan_.base_evaluation().name;
    options.columns = plan_.study().columns;
    std::vector<std::string> paths;
    for (const StudyStart& start : plan_.starts()) paths.push_back(start.path);
    std::string failed;
    for (const GateResult& gate : study_table(paths, options).gates) {
      log(str("gate ", gate.held ? "held: " : "failed: ", gate.text));
      if (!gate.held) failed += str(failed.empty() ? "" : "; ", gate.text);
    }
    if (failed.empty()) return;
    throw Error(ErrorKind::study, str("a gate of the base failed, and nothing was trained: ", failed,
                                      "; choose another base or task, or change gates in the study"));
  }

  bool finished(const StudyTask& task) const {
    return exists(path_join(task.path, "done")) &&
           exists(path_join(task.path, str("eval/", task.evaluation.name, ".json")));
  }

  // First those that no other process works on, then what these left. A run that fails does not stop the others.
  int train_all() const {
    std::vector<const StudyTask*> left;
    std::set<std::string> seen;  // rows of equal settings share a run
    for (const StudyTask& task : plan_.tasks()) {
      if (seen.insert(task.path).second && !finished(task)) left.push_back(&task);
    }
    const size_t count = left.size();
    log(str(seen.size(), " runs: ", seen.size() - count, " done already, ", count, " to do"));
    std::vector<std::string> failed;
    for (const bool wait : {false, true}) {
      std::vector<const StudyTask*> claimed;
      for (const StudyTask* task : left) {
        try {
          const std::optional<int> code = train_and_evaluate(*task, wait);
          if (!code) claimed.push_back(task);
          if (code && *code != kDone) return *code;
        } catch (const std::exception& error) {
          if (stop_requested()) throw;
          failed.push_back(str(title_of(*task), ": ", error.what()));
          log(failed.back());
        }
      }
      left = std::move(claimed);
    }
    if (failed.empty()) return kDone;
    throw Error(ErrorKind::study,
                str(failed.size(), " of ", count, " runs failed, the others are done; ", join(failed, "; ")));
  }

  // "UCAS, base 1, seed 3"
  std::string title_of(const StudyTask& task) const {
    const std::string& base = plan_.starts()[task.start].label;
    return str(task.title, ", ", config().base.crossed ? base + ", " : "", "seed ", task.seed);
  }

  // An exit code; none where another process has the run and `wait` is false.
  std::optional<int> train_and_evaluate(const StudyTask& task, bool wait) const {
    const auto lock = claim(task.path, wait);
    if (!lock) return {};
    if (!finished(task)) log("\n" + title_of(task));
    TrainConfig train = task.train;
    train.label.clear();  // rows differ between studies, runs do not
    std::string title = train.title();
    TrainedRun trained = train_or_reuse(std::move(train), task.path);
    if (trained.code != kDone) return trained.code;
    evaluate_or_reuse(task.evaluation, trained.checkpoint, task.path, title, trained.step);
    return kDone;
  }

  std::vector<std::string> make_views() const {
    remove_all(plan_.views());
    std::vector<std::string> views;
    for (const StudyBaseRow& row : plan_.base_rows()) {
      make_view({row.path, row.view, "", label_json(row.row, plan_.starts()[row.start].label, -1), row.evaluation.name,
                 config().eval_name()});
      views.push_back(row.view);
    }
    for (const StudyTask& task : plan_.tasks()) {
      TrainConfig named = task.train;
      named.label = task.title;
      make_view({task.path, task.view, to_toml(named),
                 label_json(task.row, plan_.starts()[task.start].label, task.seed), task.evaluation.name,
                 config().eval_name()});
      views.push_back(task.view);
    }
    return views;
  }

  // How the study calls a run, and what it pairs it by.
  static std::string label_json(const std::string& row, const std::string& base, int64_t seed) {
    OrderedJson json = {{"row", row}, {"base", base}};
    if (seed >= 0) json["seed"] = seed;
    return json_text(json) + "\n";
  }

  void write_results() const {
    const auto lock = claim(config().out, true);
    const StudyConfig& c = config();
    const std::string results = path_join(c.out, "results.md"), report = path_join(c.out, "report.html");
    const std::string folder = path_join(c.out, "figures");
    const std::vector<std::string> views = make_views();
    const StudyTable table = study_table(views, table_options(plan_.study(), words_));
    std::string markdown = table_markdown(table);
    if (StudyFigure decision = decision_figure(table); !decision.svg.empty()) {
      decision.name = file_name(decision.name);
      markdown += linked(decision);
      write_figures({decision}, folder);
    }
    for (const FigureRequest& request : figure_requests(plan_.study(), views, config().eval_name())) {
      std::vector<StudyFigure> figures = study_figures(request);
      for (StudyFigure& figure : figures) {
        figure.name = file_name(figure.name);
        markdown += linked(figure);
        figure.markdown.clear();  // is in the table's document
      }
      write_figures(figures, folder);
    }
    write_file(results, markdown);
    write_report(views, report, c.title);
    out(str("\n", table_text(table), "\nresults ", results, "\nfigures ", folder, "\nreport  ", report, "\n"));
  }

  // "tiny-dynamics" and "dynamics-entropy" make "tiny-dynamics-entropy".
  std::string file_name(const std::string& figure) const {
    const std::string& study = plan_.study().name;
    const std::string kind = study.substr(study.find_last_of('-') + 1);
    if (figure == kind) return study;
    return figure.starts_with(kind + "-") ? study + figure.substr(kind.size()) : str(study, "-", figure);
  }

  static std::string linked(const StudyFigure& figure) {
    if (figure.svg.empty()) {  // a document of its own: title and note are in it
      return str("\n", figure.markdown.starts_with("# ") ? "#" : "", figure.markdown);
    }
    std::string text = str("\n## ", figure.title, "\n\n![", figure.title, "](figures/", figure.name, ".svg)\n");
    if (!figure.note.empty()) text += str("\n", figure.note, "\n");
    return figure.table.empty() ? text : str(text, "\n", figure.table);
  }

  StudyPlan plan_;
  Words words_;
};

}  // namespace

int run_study(Study study, const Words& words) { return StudyRunner(std::move(study), words).run(); }

int run_one_of(Study study, const Words& words, const std::string& id) {
  return StudyRunner(std::move(study), words).run_only(id);
}

}  // namespace ucas

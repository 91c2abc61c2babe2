#include "study/engine/runner.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/stop.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "records/run/run_directory.h"
#include "report/report.h"
#include "study/engine/matched.h"
#include "study/engine/plan.h"
#include "study/engine/text_tasks.h"
#include "study/jobs.h"
#include "study/table.h"
#include "study/view.h"

namespace ucas {

namespace {

class StudyRunner {
 public:
  // `words`: what `ucas study` was called with, for the workers.
  StudyRunner(Study study, Words words) : plan_(std::move(study)), words_(std::move(words)) {}

  int run() {
    double began = now_seconds();
    if (int code = prepare_all(); code != kDone) return code;
    check_base();
    if (int code = train_all(); code != kDone) return code;
    evaluate_matched();
    write_results();
    log(str("took ", human_seconds(now_seconds() - began)));
    return kDone;
  }

  // `id`: ROW/SEED, or base-SEED. What a worker does; and anyone who spreads a study over machines that share the pool.
  int run_only(const std::string& id) {
    auto start = std::ranges::find(plan_.starts(), id, &StudyStart::id);
    if (start != plan_.starts().end()) {
      prepare(*start);
      return kDone;
    }
    auto task = std::ranges::find(plan_.tasks(), id, &StudyTask::id);
    if (task == plan_.tasks().end()) {
      std::vector<std::string> ids;
      for (const StudyStart& each : plan_.starts()) ids.push_back(each.id());
      for (const StudyTask& each : plan_.tasks()) ids.push_back(each.id);
      throw Error(ErrorKind::config, str("--only ", printable(id), ": expected one of ", join(ids, ", ")));
    }
    prepare(plan_.starts()[task->start]);
    return train_and_evaluate(*task);
  }

 private:
  const StudyConfig& config() const { return plan_.config(); }

  // Several bases side by side, as the runs are: first what each worker makes, then nothing is left to do but to look.
  int prepare_all() {
    std::vector<Job> jobs;
    for (const StudyStart& start : plan_.starts()) {
      if (config().base.embedded() && !exists(path_join(start.model, "config.json"))) {
        jobs.push_back(job_of(start.label.empty() ? "base" : start.label, start.path, start.id(), 0));
      }
    }
    if (config().jobs > 1 && jobs.size() > 1) {
      log(str(jobs.size(), " bases to warm up, ", config().jobs, " side by side"));
      if (int code = run_side_by_side(jobs, "bases"); code != kDone) return code;
    }
    for (const StudyStart& start : plan_.starts()) prepare(start);
    return kDone;
  }

  void make_tasks() const {
    if (config().base.tasks.empty()) return;
    make_directories(plan_.text_tasks_home());
    std::unique_ptr<FileLock> lock = wait_for(path_join(plan_.text_tasks_home(), ".claim"));
    make_text_tasks(config().base, plan_.text_tasks_home());
  }

  // Made once; a second worker waits.
  void prepare(const StudyStart& start) {
    make_tasks();
    if (config().base.embedded()) {
      make_directories(plan_.task_home());
      std::unique_ptr<FileLock> lock = wait_for(path_join(plan_.task_home(), ".claim"));
      make_embedded_task(plan_.embedded_base(start));
    }
    make_directories(start.path);
    std::unique_ptr<FileLock> lock = wait_for(path_join(start.path, ".claim"));
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
    evaluate_or_reuse(plan_.base_evaluation(), start.model, start.path, "base", -1);
    for (const StudyBaseRow& row : plan_.base_rows()) {
      if (&plan_.starts()[row.start] != &start) continue;
      make_directories(row.path);
      evaluate_or_reuse(row.evaluation, start.model, row.path, row.row, -1);
    }
  }

  std::unique_ptr<FileLock> wait_for(const std::string& path) const {
    for (bool told = false;; told = true) {
      try {
        return std::make_unique<FileLock>(path);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::path) throw;
        if (!told) log(str("waiting: ", error.what()));
      }
      if (stop_requested()) throw Error(ErrorKind::interrupted, "stopped while waiting", kInterrupted);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  // Gates of the base alone: where they fail nothing is trained.
  void check_base() const {
    TableOptions options;
    for (const std::string& text : config().gates) {
      if (parse_gate(text).of_base()) options.gates.push_back(text);
    }
    if (options.gates.empty()) return;
    options.eval = plan_.base_evaluation().name;
    options.columns = config().columns;
    std::vector<std::string> paths;
    for (const StudyStart& start : plan_.starts()) paths.push_back(start.path);
    std::string failed;
    for (const GateResult& gate : study_table(paths, options).gates) {
      log(str("gate ", gate.held ? "held: " : "failed: ", gate_text(gate)));
      if (!gate.held) failed += str(failed.empty() ? "" : "; ", gate_text(gate));
    }
    if (failed.empty()) return;
    throw Error(ErrorKind::study, str("a gate of the base failed, and nothing was trained: ", failed,
                                      "; choose another base or task, or change gates in the study"));
  }

  // Once all runs are there: which checkpoint is meant depends on the other rows.
  void evaluate_matched() {
    if (!config().asks_for("matched_pass")) return;
    std::map<std::pair<size_t, int64_t>, std::vector<StudyTask*>> groups;
    for (StudyTask& task : plan_.tasks()) groups[{task.start, task.seed}].push_back(&task);
    for (const auto& [luck, tasks] : groups) {
      std::vector<ValidatedSteps> validated;
      for (const StudyTask* task : tasks) {
        validated.push_back(validated_steps(read_run(task->path), task->train.train.val_n));
      }
      const std::vector<int64_t> steps = matched_steps(validated);
      for (size_t i = 0; i < tasks.size(); ++i) {
        EvaluationPlan evaluation = tasks[i]->evaluation;
        evaluation.name = tasks[i]->matched = str("matched-", steps[i], "-", evaluation.name);
        const std::string checkpoint = path_join(tasks[i]->path, str("checkpoints/", step_name(steps[i])));
        evaluate_or_reuse(evaluation, checkpoint, tasks[i]->path, tasks[i]->title, steps[i]);
      }
    }
  }

  bool finished(const StudyTask& task) const {
    return exists(path_join(task.path, "done")) &&
           exists(path_join(task.path, str("eval/", task.evaluation.name, ".json")));
  }

  int train_all() {
    std::vector<const StudyTask*> open;
    std::set<std::string> seen;  // rows of equal settings share a run
    size_t reused = 0;
    for (const StudyTask& task : plan_.tasks()) {
      if (!seen.insert(task.path).second) continue;
      if (finished(task)) {
        ++reused;
      } else {
        open.push_back(&task);
      }
    }
    log(str(seen.size(), " runs: ", reused, " done already, ", open.size(), " to do",
            config().jobs > 1 ? str(", ", config().jobs, " side by side") : ""));
    if (config().jobs > 1 && open.size() > 1) return train_side_by_side(open);
    const size_t count = open.size();
    size_t busy = 0;  // in a row
    std::set<const StudyTask*> told;
    for (std::deque<const StudyTask*> left(open.begin(), open.end()); !left.empty();) {
      const StudyTask& task = *left.front();
      left.pop_front();
      const bool again = !told.insert(&task).second;
      if (!again) log(str("\n[", told.size(), "/", count, "] ", task.title, ", ", luck_of(task)));
      const int code = train_and_evaluate(task, again);
      if (code == kDone) {
        busy = 0;
        continue;
      }
      if (code != kBusy) return code;
      left.push_back(&task);  // another process has it, perhaps on another machine
      if (++busy >= left.size() && !waited()) return kInterrupted;
    }
    return kDone;
  }

  // False: told to stop.
  static bool waited() {
    for (int i = 0; i < 20 && !stop_requested(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return !stop_requested();
  }

  Job job_of(const std::string& title, const std::string& run, const std::string& id, int64_t steps) const {
    Job job{title, run, {"study"}, steps};
    job.words.insert(job.words.end(), words_.begin(), words_.end());
    for (const char* word : {"--only", id.c_str(), "--worker", "true"}) job.words.emplace_back(word);
    return job;
  }

  int train_side_by_side(const std::vector<const StudyTask*>& open) const {
    std::vector<Job> jobs;
    for (const StudyTask* task : open) {
      jobs.push_back(job_of(str(task->title, ", ", luck_of(*task)), task->path, task->id, task->train.train.steps));
    }
    return run_side_by_side(jobs, "runs");
  }

  // "seed 3", "base 1, seed 3"
  std::string luck_of(const StudyTask& task) const {
    const std::string& base = plan_.starts()[task.start].label;
    return str(config().base.crossed ? base + ", " : "", "seed ", task.seed);
  }

  int run_side_by_side(const std::vector<Job>& jobs, const char* what) const {
    JobsResult result = run_jobs(jobs, config().jobs, stop_requested);
    if (result.stopped) {
      log("stopped; the same command goes on");
      return kInterrupted;
    }
    if (!result.failed.empty()) {
      std::string text;
      for (const FailedJob& failed : result.failed) text += str("; ", failed.title, ": ", failed.log);
      throw Error(ErrorKind::study,
                  str(result.failed.size(), " of ", jobs.size(), " ", what, " failed, the others are done", text));
    }
    return kDone;
  }

  // `again`: that another process has it was said.
  int train_and_evaluate(const StudyTask& task, bool again = false) {
    make_directories(task.path);
    std::optional<FileLock> claim;
    try {
      claim.emplace(path_join(task.path, ".claim"));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::path) throw;
      if (!again) log(error.what());
      return kBusy;
    }
    TrainConfig train = task.train;
    train.label.clear();  // rows differ between studies, runs do not
    std::string title = train.title();
    TrainedRun trained = train_or_reuse(std::move(train), task.path);
    if (trained.code != kDone) return trained.code;
    evaluate_or_reuse(task.evaluation, trained.checkpoint, task.path, title, trained.step);
    return kDone;
  }

  std::vector<std::string> make_views() const {
    remove_all(plan_.places().runs());
    std::vector<std::string> views;
    for (const StudyStart& start : plan_.starts()) {
      make_view({start.path, start.view, "", label_json("base", start.label, -1), plan_.base_evaluation().name,
                 plan_.eval_name()});
      views.push_back(start.view);
    }
    for (const StudyBaseRow& row : plan_.base_rows()) {
      make_view({row.path, row.view, "", label_json(row.row, plan_.starts()[row.start].label, -1), row.evaluation.name,
                 plan_.eval_name()});
      views.push_back(row.view);
    }
    for (const StudyTask& task : plan_.tasks()) {
      TrainConfig named = task.train;
      named.label = task.title;
      make_view({task.path, task.view, to_toml(named),
                 label_json(task.row, plan_.starts()[task.start].label, task.seed), task.evaluation.name,
                 plan_.eval_name(), task.matched});
      views.push_back(task.view);
    }
    return views;
  }

  // How the study calls a run, and what it pairs it by.
  static std::string label_json(const std::string& row, const std::string& base, int64_t seed) {
    OrderedJson json = {{"row", row}, {"base", base}};
    if (seed >= 0) json["seed"] = seed;
    return json.dump() + "\n";
  }

  // What makes the table again: without what only says where, and how many side by side.
  std::string command() const {
    static const std::set<std::string> kElsewhere = {"--out", "--pool", "--table", "--figures", "--jobs", "--threads"};
    std::string text = "ucas study";
    for (size_t i = 0; i < words_.size(); ++i) {
      if (kElsewhere.contains(words_[i])) {
        ++i;
      } else if (!kElsewhere.contains(words_[i].substr(0, words_[i].find('=')))) {
        text += " " + words_[i];
      }
    }
    return text;
  }

  TableOptions table_options() const {
    const StudyConfig& c = config();
    TableOptions options;
    options.title = c.title;
    options.command = command();
    options.eval = plan_.eval_name();
    for (const StudyTask& task : plan_.tasks()) {
      if (task.row == c.reference) options.reference = task.title;
    }
    options.columns = c.columns;
    options.compare = c.compare;
    options.axes = plan_.study().axes;
    options.metric = c.metric;
    options.each_seed = c.is("seeds");
    options.gates = c.gates;
    options.decide = c.decide;
    for (const StudyTask& task : plan_.tasks()) options.titles[task.row] = task.title;
    return options;
  }

  void write_results() const {
    const StudyConfig& c = config();
    const StudyPlaces& places = plan_.places();
    make_directories(places.out);
    std::vector<std::string> views = make_views();
    StudyTable table = study_table(views, table_options());
    std::vector<StudyFigure> figures;
    for (const FigureRequest& request : figure_requests(plan_.study(), views, plan_.eval_name())) {
      for (StudyFigure& figure : study_figures(request)) figures.push_back(std::move(figure));
    }
    write_figures(figures, places.figures());
    std::string markdown = table_markdown(table);
    write_file(places.results("md"), markdown + figure_links(figures, "figures/"));
    write_file(places.results("csv"), table_csv(table));
    write_file(places.results("tex"), table_tex(table));
    publish(markdown, figures);
    write_report(views, places.report(), c.title);
    out(str("\n", table_text(table), "\nresults ", places.results("md"), ", .csv, .tex\n",
            figures.empty() ? "" : str("figures ", places.figures(), "\n"), "report  ", places.report(), "\n"));
  }

  // "tiny-dynamics" and "dynamics-entropy" make "tiny-dynamics-entropy".
  static std::string published_name(const std::string& study, const std::string& figure) {
    std::string kind = study.substr(study.find_last_of('-') + 1);
    if (figure == kind) return study;
    return figure.starts_with(kind + "-") ? study + figure.substr(kind.size()) : str(study, "-", figure);
  }

  static std::string figure_links(const std::vector<StudyFigure>& figures, const std::string& folder) {
    std::string text;
    for (const StudyFigure& figure : figures) {
      if (figure.svg.empty()) {  // a document of its own: title and note are in it
        text += str("\n", figure.markdown.starts_with("# ") ? "#" : "", figure.markdown);
        continue;
      }
      text += str("\n## ", figure.title, "\n\n![", figure.title, "](", folder, figure.name, ".svg)\n");
      if (!figure.note.empty()) text += str("\n", figure.note, "\n");
      if (!figure.table.empty()) text += "\n" + figure.table;
    }
    return text;
  }

  // To the places in a repository that the study names.
  void publish(const std::string& markdown, std::vector<StudyFigure> figures) const {
    const StudyConfig& c = config();
    for (StudyFigure& figure : figures) figure.name = published_name(plan_.study().name, figure.name);
    if (!c.table.empty()) {
      std::string folder = c.figures + "/", beside = c.table.substr(0, c.table.find_last_of('/') + 1);
      if (!beside.empty()) make_directories(beside);
      if (folder.starts_with(beside)) folder = folder.substr(beside.size());
      write_output(c.table, markdown + (c.figures.empty() ? "" : figure_links(figures, folder)));
    }
    if (c.figures.empty()) return;
    for (StudyFigure& figure : figures) {
      if (!c.table.empty()) figure.markdown.clear();  // stands in the table's document
    }
    write_figures(figures, c.figures);
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

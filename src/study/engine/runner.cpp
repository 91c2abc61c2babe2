#include "study/engine/runner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
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
#include "report/report.h"
#include "study/engine/plan.h"
#include "study/engine/text_tasks.h"
#include "study/table.h"
#include "study/view.h"

namespace ucas {

namespace {

// Processes beside this one that work on the same study; they save and end with it.
struct Helpers {
  std::vector<pid_t> all;
  ~Helpers() {
    for (pid_t helper : all) ::kill(helper, SIGTERM);
    for (pid_t helper : all) ::waitpid(helper, nullptr, 0);
  }
};

class StudyRunner {
 public:
  StudyRunner(Study study, Words words) : plan_(std::move(study)), words_(std::move(words)) {}

  int run() {
    const double began = now_seconds();
    make_directories(config().out);
    start_helpers();
    if (int code = work(0); code != kDone) return code;
    write_results();
    log(str("took ", human_seconds(now_seconds() - began)));
    return kDone;
  }

  // `id`: ROW/SEED, or base-SEED.
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
    return train_and_evaluate(*task).value_or(kInterrupted);
  }

 private:
  const StudyConfig& config() const { return plan_.config(); }

  // One for each job but this, with its output in OUT/job-N.log. Before anything of the engine runs: a process with
  // threads cannot be copied.
  void start_helpers() {
    for (int64_t job = 1; job < config().jobs; ++job) {
      const std::string log_file = path_join(config().out, str("job-", job, ".log"));
      const pid_t parent = ::getpid(), child = ::fork();
      if (child < 0) throw Error(ErrorKind::io, "cannot start a process for --jobs", kIoFailure);
      if (child > 0) {
        helpers_.all.push_back(child);
        continue;
      }
      helpers_.all.clear();
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) ::_exit(kInterrupted);  // it went just before
      const int file = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0644);
      for (int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(file, stream);
      int code = kInterrupted;
      try {
        code = work(job);
      } catch (const std::exception& error) {  // this process meets it, too, and says so
        log(error.what());
      }
      ::_exit(code);
    }
    if (config().jobs > 1) log(str(config().jobs, " processes; the others log to ", config().out, "/job-N.log"));
  }

  // Bases, then runs. Processes begin with different bases, and wait for those that another one makes.
  int work(int64_t job) {
    const auto& starts = plan_.starts();
    const size_t first = static_cast<size_t>(job) * starts.size() / static_cast<size_t>(config().jobs);
    for (size_t i = 0; i < starts.size(); ++i) prepare(starts[(first + i) % starts.size()]);
    check_base();
    return train_all();
  }

  // Made once; a second process waits.
  void prepare(const StudyStart& start) const {
    if (!config().base.tasks.empty()) {
      make_directories(plan_.text_tasks_home());
      std::unique_ptr<FileLock> lock = wait_for(path_join(plan_.text_tasks_home(), ".claim"));
      make_text_tasks(config().base, plan_.text_tasks_home());
    }
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

  // What another process works on, perhaps on another machine, is looked at again until it is done. A run that fails
  // does not stop the others.
  int train_all() const {
    std::deque<const StudyTask*> left;
    std::set<std::string> seen;  // rows of equal settings share a run
    size_t reused = 0;
    for (const StudyTask& task : plan_.tasks()) {
      if (!seen.insert(task.path).second) continue;
      finished(task) ? void(++reused) : left.push_back(&task);
    }
    const size_t count = left.size();
    log(str(seen.size(), " runs: ", reused, " done already, ", count, " to do"));
    std::set<const StudyTask*> busy;  // since one was last done
    std::vector<std::string> failed;
    while (!left.empty()) {
      const StudyTask& task = *left.front();
      left.pop_front();
      try {
        const std::optional<int> code = train_and_evaluate(task);
        if (code && *code != kDone) return *code;
        if (code) busy.clear();
        if (!code) left.push_back(&task);
        if (!code && !busy.insert(&task).second && !waited()) return kInterrupted;
      } catch (const std::exception& error) {
        if (stop_requested()) throw;
        failed.push_back(str(title_of(task), ": ", error.what()));
        log(failed.back());
      }
    }
    if (failed.empty()) return kDone;
    throw Error(ErrorKind::study,
                str(failed.size(), " of ", count, " runs failed, the others are done; ", join(failed, "; ")));
  }

  // False: told to stop.
  static bool waited() {
    for (int i = 0; i < 20 && !stop_requested(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return !stop_requested();
  }

  // "UCAS, base 1, seed 3"
  std::string title_of(const StudyTask& task) const {
    const std::string& base = plan_.starts()[task.start].label;
    return str(task.title, ", ", config().base.crossed ? base + ", " : "", "seed ", task.seed);
  }

  // An exit code; none where another process has the run.
  std::optional<int> train_and_evaluate(const StudyTask& task) const {
    make_directories(task.path);
    std::optional<FileLock> claim;
    try {
      claim.emplace(path_join(task.path, ".claim"));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::path) throw;
      return {};
    }
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
                 plan_.eval_name()});
      views.push_back(row.view);
    }
    for (const StudyTask& task : plan_.tasks()) {
      TrainConfig named = task.train;
      named.label = task.title;
      make_view({task.path, task.view, to_toml(named),
                 label_json(task.row, plan_.starts()[task.start].label, task.seed), task.evaluation.name,
                 plan_.eval_name()});
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
    static const std::set<std::string> kElsewhere = {"--out", "--pool", "--jobs", "--threads"};
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
    options.columns = plan_.study().columns;
    options.compare = plan_.study().compare;
    options.each_seed = c.is("seeds");
    options.gates = plan_.study().gates;
    options.decide = c.decide;
    for (const StudyTask& task : plan_.tasks()) options.titles[task.row] = task.title;
    return options;
  }

  void write_results() const {
    const StudyConfig& c = config();
    const std::string results = path_join(c.out, "results"), report = path_join(c.out, "report.html");
    const std::string folder = path_join(c.out, "figures");
    const std::vector<std::string> views = make_views();
    const StudyTable table = study_table(views, table_options());
    std::string markdown = table_markdown(table);
    for (const FigureRequest& request : figure_requests(plan_.study(), views, plan_.eval_name())) {
      std::vector<StudyFigure> figures = study_figures(request);
      for (StudyFigure& figure : figures) {
        figure.name = file_name(figure.name);
        markdown += linked(figure);
        figure.markdown.clear();  // stands in the table's document
      }
      write_figures(figures, folder);
    }
    write_file(results + ".md", markdown);
    write_file(results + ".csv", table_csv(table));
    write_file(results + ".tex", table_tex(table));
    write_report(views, report, c.title);
    out(str("\n", table_text(table), "\nresults ", results, ".md, .csv, .tex\nfigures ", folder, "\nreport  ", report,
            "\n"));
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
  Helpers helpers_;
};

}  // namespace

int run_study(Study study, const Words& words) { return StudyRunner(std::move(study), words).run(); }

int run_one_of(Study study, const Words& words, const std::string& id) {
  return StudyRunner(std::move(study), words).run_only(id);
}

}  // namespace ucas

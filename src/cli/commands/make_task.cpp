// ucas make-task: writes a task's files, of the embedded one or of those for pretrained models.
#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "data/tasks/register_chains.h"
#include "data/tasks/task.h"

namespace ucas {

namespace {

constexpr const char* kOutHelp = "directory for the files; created if missing";

struct MakeTaskConfig {
  std::string out;
  TaskKind form = TaskKind::chains;
  TaskOptions task;

  void fields(Fields& f) {
    f.field("out", out, kOutHelp);
    const char* help =
        "task that sets the defaults below: chains = 5 to 10 definitions; length = up to 12, demonstrated up to 7; "
        "hidden_rule = a marker decides; hidden_steps = a hidden operation per letter";
    f.choice("task", form, help);
    task.fields(f);
  }
};

// Of a task for pretrained models.
struct MakeTextTaskConfig {
  std::string out;
  TextTaskKind task = TextTaskKind::word_problems;
  TextTaskOptions options;

  void fields(Fields& f) {
    f.field("out", out, kOutHelp);
    f.choice("task", task, "task to write, as described above");
    options.fields(f);
  }
};

void need_out(const std::string& out) {
  if (out.empty()) throw Error(ErrorKind::usage, "make-task: --out DIR is missing");
}

std::string counts(const std::string& directory, int64_t train, int64_t dev, int64_t test) {
  return str(printable(directory, 400), ": ", grouped(train), " train, ", grouped(dev), " dev and ", grouped(test),
             " test problems");
}

int make_text_files(const std::vector<Setting>& settings) {
  MakeTextTaskConfig config;
  ucas::apply(config, settings);
  need_out(config.out);
  write_text_task(config.out, config.task, config.options);
  const TextTaskOptions& options = config.options;
  const std::string grader = grader_of(config.task), mathematics = "math";
  out(str(counts(config.out, options.count_train, options.count_dev, options.count_test),
          "; no form of a question and no numbers are in two of them\n"
          "train on it with --reward.extract lenient",
          grader == mathematics ? "" : str(" --reward.grader ", grader),
          "; first see with `ucas evaluate` how much of it the model solves\n"));
  return kDone;
}

int make_embedded_files(const std::vector<Setting>& settings) {
  MakeTaskConfig config;
  ucas::apply(config, settings);
  config.task = options_of(config.form);
  ucas::apply(config, settings);  // options of the command line have precedence
  need_out(config.out);
  double began = now_seconds();
  int64_t vocabulary = write_register_chains(config.out, config.task);
  const TaskOptions& task = config.task;
  out(str(counts(config.out, task.count_train, task.count_dev, task.count_test), "; ", grouped(task.count_worked),
          " worked and ", grouped(task.count_mixed), " mixed demonstrations; a tokenizer of ", vocabulary, " tokens (",
          human_seconds(now_seconds() - began), ")\n"));
  return kDone;
}

}  // namespace

std::string options_make_task() {
  std::string tasks;
  for (size_t i = 0; i < names(TextTaskKind{}).size(); ++i) {
    const auto kind = static_cast<TextTaskKind>(i);
    tasks += str("  ", pad_right(word_of(kind), 16), " ", about(kind), "; grader ", grader_of(kind), "\n");
  }
  return str("Of the embedded task:\n", options_help(MakeTaskConfig{}),
             "\nTasks for pretrained models, each with its grader:\n", tasks, "\nand their options:\n",
             options_help(MakeTextTaskConfig{}));
}

int run_make_task(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  if (!line.positionals.empty()) {
    throw Error(ErrorKind::usage,
                str("make-task: ", printable(line.positionals[0]), ": expected options only; see --help"));
  }
  struct {
    TaskName task;
    void fields(Fields& f) { f.choice("task", task, ""); }
  } which{};
  ucas::apply(which, line.settings, false);
  return text_task(which.task) ? make_text_files(line.settings) : make_embedded_files(line.settings);
}

}  // namespace ucas

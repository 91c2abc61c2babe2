// ucas make-task: writes the embedded task's files.
#include "base/error.h"
#include "base/fields.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "data/register_chains.h"

namespace ucas {

namespace {

struct MakeTaskConfig {
  std::string out;
  TaskKind form = TaskKind::chains;
  TaskOptions task;

  void fields(Fields& f) {
    f.field("out", out, "directory for the files; made if it is not there");
    const char* help =
        "chains of 5 to 10 definitions; or, to see whether chains longer than those demonstrated are worked out, 5 to "
        "12 from a random letter with 7 at most demonstrated; or, to see what becomes of right strategies that a model "
        "seldom uses, a marker that decides what is asked for, or letters that each have an operation of their own: "
        "sets the defaults of the options below";
    f.choice("task", form, help);
    f.choice("form", form, "the same as task, by its earlier name");
    task.fields(f);
  }
};

}  // namespace

std::string options_make_task() { return options_help(MakeTaskConfig{}); }

int run_make_task(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  if (!line.positionals.empty()) {
    throw Error("usage", str("make-task: ", printable(line.positionals[0]), ": expected options only; see --help"));
  }
  MakeTaskConfig config;
  ucas::apply(config, line.settings);
  config.task = options_of(config.form);
  ucas::apply(config, line.settings);  // what was given on the command line stands
  if (config.out.empty()) throw Error("usage", "make-task: --out DIR is missing");
  double began = now_seconds();
  int64_t vocabulary = write_register_chains(config.out, config.task);
  const TaskOptions& task = config.task;
  out(str(printable(config.out, 400), ": ", grouped(task.count_train), " train, ", grouped(task.count_dev), " dev and ",
          grouped(task.count_test), " test problems; ", grouped(task.count_worked), " worked and ",
          grouped(task.count_mixed), " mixed demonstrations; a tokenizer of ", vocabulary, " tokens (",
          human_seconds(now_seconds() - began), ")\n"));
  return kDone;
}

}  // namespace ucas

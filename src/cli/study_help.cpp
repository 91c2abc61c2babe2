#include "base/embedded.h"
#include "base/str.h"
#include "cli/command.h"
#include "study/config.h"

namespace ucas {

std::string help_study() {
  std::string text =
      "ucas study - several trainings from one base (or a base for each seed), over seeds: the tables and figures of a "
      "paper\n\n"
      "  ucas study STUDY.toml [--seeds 4] [--jobs 2] [--out DIR] [--pool DIR] [--all.train.steps 50 ...]\n"
      "  ucas study STUDY.toml --check     read everything, say what would be run and where; start nothing\n"
      "  ucas study STUDY.toml --only ROW/SEED     that run alone, into the pool: to spread a study over machines\n\n"
      "STUDY is a file or the name of an embedded one:\n ";
  size_t column = 1;
  for (const std::string& name : embedded_stems("studies/")) {
    if (column + name.size() > 110) {
      text += "\n ";
      column = 1;
    }
    text += " " + name;
    column += name.size() + 1;
  }
  text +=
      "\n\nEvery row of the table is a config of `ucas train`, as it is or with settings of its own:\n\n"
      "  kind = [\"ablation\", \"dynamics\"]\n"
      "  runs = [\"dapo-tiny\", \"stage1\"]\n"
      "  [run.stage1]\n"
      "  config = \"ucas-tiny\"\n"
      "  label = \"UCAS, stage 1 only\"\n"
      "  method.beta = 0\n"
      "  [grid]                        # a row for each combination\n"
      "  config = \"ucas-tiny\"\n"
      "  method.alpha = [0.1, 0.25]\n"
      "  [grid.held]                   # instead: each list varied alone, the others at these values\n"
      "  method.alpha = 0.25\n\n"
      "A kind says what is drawn of the runs:\n"
      "  methods, ablation, signals   the table, and its rows as bars\n"
      "  sensitivity                  a map over the settings of [grid]\n"
      "  seeds                        each seed a line of the table\n"
      "  dynamics                     validation, reward, length and entropy against the step (needs train.test_freq)\n"
      "  passk                        pass@k against k, 64 samples a problem unless told\n"
      "  confidence                   response confidence before and after training; calibration\n"
      "  case                         the rows' responses to one problem side by side\n\n"
      "[all] holds settings of every run. Run directories live in the pool, named by a hash of every setting that\n"
      "decides the result and of the base: studies that share a pool share runs, finished ones are reused, an\n"
      "interrupted study goes on with the same command. OUT receives results.md, .csv and .tex, figures/, "
      "report.html,\n"
      "and runs/ROW-seedN, which `ucas report` and `ucas compare` read. --jobs N trains N runs side by side, each in "
      "a\n"
      "process of its own with its output in RUN/log.txt; with the same threads per run the digits are the same.\n\n";
  return text + options_help(StudyConfig{});
}

}  // namespace ucas

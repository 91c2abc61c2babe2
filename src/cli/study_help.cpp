#include "base/embedded.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/study_config.h"

namespace ucas {

std::string help_study() {
  std::string text =
      "ucas study - several trainings from one base, over seeds, in one table\n\n"
      "  ucas study STUDY.toml [--seeds 4] [--out DIR] [--table FILE.md] [--all.train.steps 50 ...]\n\n"
      "STUDY is a file or the name of an embedded one:";
  for (const std::string& name : embedded_names("studies/")) text += " " + name.substr(8, name.size() - 13);
  text +=
      "\n\nEvery row of the table is a config of `ucas train`, as it is or with settings of its own:\n\n"
      "  runs = [\"dapo-tiny\", \"stage1\"]\n"
      "  [run.stage1]\n"
      "  config = \"ucas-tiny\"\n"
      "  label = \"UCAS, stage 1 only\"\n"
      "  method.beta = 0\n\n"
      "[all] holds settings of every run. A run's directory carries a hash of its settings: run the command again to\n"
      "go on after an interruption or to add seeds and rows; finished runs are reused, changed ones run anew.\n"
      "OUT receives results.md, .csv and .tex, and report.html.\n\n";
  return text + options_help(StudyConfig{});
}

}  // namespace ucas

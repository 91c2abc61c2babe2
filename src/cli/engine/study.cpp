#include <algorithm>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "hf/hub.h"
#include "study/engine/plan.h"
#include "study/table.h"

namespace ucas {

int run_study(const Words& words) {
  CommandLine line = parse_command_line(words, {"check"});
  if (line.positionals.size() != 1)
    throw Error(ErrorKind::usage, "ucas study STUDY.toml [--key value ...]; see --help");
  const bool check = std::ranges::any_of(line.settings, [](const Setting& s) { return s.key == "check"; });
  std::erase_if(line.settings, [](const Setting& s) { return s.key == "check"; });
  const std::string from = take_option(line.settings, "from"), only = take_option(line.settings, "only");
  Study study = read_study(line.positionals[0], line.settings, from.empty());
  if (!from.empty()) {
    const StudyTable table = study_table(runs_below(from, study), table_options(study, words));
    out(table_markdown(table));
    const bool keep = std::ranges::find(line.settings, "out", &Setting::key) != line.settings.end();
    const StudyFigure figure = decision_figure(table);
    for (const std::string& path : keep && !figure.svg.empty() ? write_figures({figure}, study.config.out) : Words{})
      log(str("wrote ", path));
    return kDone;
  }
  if (check) {
    out(check_study(StudyPlan(std::move(study))));
    return kDone;
  }
  resolve_hub_names(study.config);
  install_stop_signals();
  return only.empty() ? run_study(std::move(study), words) : run_one_of(std::move(study), words, only);
}

}  // namespace ucas

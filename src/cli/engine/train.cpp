#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/train_options.h"
#include "cli/train_progress.h"
#include "train/trainer.h"

namespace ucas {

int run_train(const Words& words) {
  CommandLine line = parse_command_line(words, {"allow-changes"});
  std::string out = take_option(line.settings, "out"), resume = take_option(line.settings, "resume");
  std::unique_ptr<TrainObserver> observer =
      make_train_observer(parse_progress_mode(take_option(line.settings, "progress")));
  expand_short_forms(line.settings);
  if (line.positionals.size() > 1) {
    throw Error("usage", str("one CONFIG at most, got ", join(line.positionals, " "), "; see ucas train --help"));
  }
  install_stop_signals();
  if (!resume.empty()) {
    if (!line.positionals.empty() || !out.empty()) {
      throw Error("usage", "--resume RUN goes on with that run's own config.toml: give neither CONFIG nor --out");
    }
    Training training = resume_training(resume, line.settings);
    return Trainer(training).run(*observer);
  }
  if (out.empty()) throw Error("usage", "--out RUN is missing: the directory that the run is written to");
  std::vector<Setting> settings;
  if (!line.positionals.empty()) settings = read_config_file(line.positionals[0]);
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  Training training = open_training(make_train_config(settings), out);
  return Trainer(training).run(*observer);
}

}  // namespace ucas

#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "train/trainer.h"

namespace ucas {

namespace {

// Short forms of the options that everyone types.
void expand_short_forms(std::vector<Setting>& settings) {
  for (Setting& setting : settings) {
    if (setting.key == "data") setting.key = "data.files";
    if (setting.key == "val") setting.key = "data.val_files";
    if (setting.key == "method") setting.key = "method.name";
    if (setting.key == "max-hours") setting.key = "train.max_hours";
  }
}

std::string take(std::vector<Setting>& settings, const std::string& key) {
  std::string value;
  std::erase_if(settings, [&](const Setting& s) {
    if (s.key != key) return false;
    value = std::get<std::string>(s.value);
    return true;
  });
  return value;
}

}  // namespace

int run_train(const Words& words) {
  CommandLine line = parse_command_line(words, {"allow-changes"});
  std::string out = take(line.settings, "out"), resume = take(line.settings, "resume");
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
    return Trainer(training).run();
  }
  if (out.empty()) throw Error("usage", "--out RUN is missing: the directory that the run is written to");
  std::vector<Setting> settings;
  if (!line.positionals.empty()) settings = read_config_file(line.positionals[0]);
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  Training training = open_training(make_train_config(settings), out);
  return Trainer(training).run();
}

}  // namespace ucas

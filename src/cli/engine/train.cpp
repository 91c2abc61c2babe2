#include "base/error.h"
#include "base/log.h"
#include "base/refusals.h"
#include "base/stop.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/engine/speaking.h"
#include "config/run_evaluation.h"
#include "config/train_options.h"
#include "progress/train_progress.h"
#include "train/trainer.h"

namespace ucas {

namespace {

// As it would be typed again.
std::string command_text(const Words& words) {
  std::string text = "ucas train";
  for (const std::string& word : words) text += str(" ", shell_word(word));
  return text;
}

int train_to_the_end(Training training, TrainObserver& observer) {
  const int code = Trainer(training).run(observer);
  if (code != kDone) return code;
  const std::string run = training.run.path(), model = training.run.checkpoint(training.state.step);
  log(str("the model is ", model, "; next, for example:"));
  log(str("  ", evaluate_line(training.config, model), " --out EVAL"));
  log(str("  ucas report ", shell_word(run), " -o report.html"));
  return code;
}

// A new run, of a config and what was typed beside it.
int begin_training(const CommandLine& line, const std::string& out, const std::string& command,
                   std::shared_ptr<Ranks> ranks, TrainObserver& observer) {
  std::vector<Setting> settings;
  if (!line.positionals.empty()) settings = read_config_file(line.positionals[0]);
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  const bool over_plan = std::erase_if(settings, [](const Setting& s) { return s.key == "allow-over-plan"; }) > 0;
  Refusals refuse("config");
  TrainConfig config;
  refuse.attempt([&] { config = make_train_config(settings); });
  if (refuse.none()) refuse.attempt([&] { config.validate(); });
  const char* no_out = "--out RUN is missing: the directory that the run is written to";
  if (refuse.none() && out.empty()) throw Error("usage", no_out);
  if (out.empty()) refuse(no_out);
  refuse.finish();
  return train_to_the_end(open_training(std::move(config), out, command, over_plan, std::move(ranks)), observer);
}

}  // namespace

int run_train(const Words& words) {
  CommandLine line = parse_command_line(words, {"allow-changes", "allow-over-plan"});
  std::string out = take_option(line.settings, "out"), resume = take_option(line.settings, "resume");
  std::unique_ptr<TrainObserver> observer =
      make_train_observer(parse_progress_mode(take_option(line.settings, "progress")));
  expand_short_forms(line.settings);
  if (line.positionals.size() > 1) {
    throw Error("usage", str("one CONFIG at most, got ", join(line.positionals, " "), "; see ucas train --help"));
  }
  install_stop_signals();
  const std::shared_ptr<Ranks> ranks = open_ranks();
  if (!ranks->leads()) observer = std::make_unique<TrainObserver>();
  return speaking_once(*ranks, [&] {
    if (resume.empty()) return begin_training(line, out, command_text(words), ranks, *observer);
    if (!line.positionals.empty() || !out.empty()) {
      throw Error("usage", "--resume RUN goes on with that run's own config.toml: give neither CONFIG nor --out");
    }
    return train_to_the_end(resume_training(resume, line.settings, ranks), *observer);
  });
}

}  // namespace ucas

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/engine/speaking.h"
#include "cli/options/train_options.h"
#include "config/config_file.h"
#include "config/run_evaluation.h"
#include "hf/hub.h"
#include "report/progress/train_progress.h"
#include "train/loop/trainer.h"

namespace ucas {

namespace {

// As it would be typed again.
std::string command_text(const Words& words) {
  std::string text = "ucas train";
  for (const std::string& word : words) text += str(" ", shell_word(word));
  return text;
}

int train_to_the_end(Training training, TrainObserver& observer) {
  const int code = [&] {
    try {
      return Trainer(training).run(observer);
    } catch (const c10::OutOfMemoryError& error) {
      const std::string text = error.what_without_backtrace();
      throw Error(ErrorKind::memory,
                  out_of_memory_words(training.plan, training.config, text.substr(0, text.find('\n'))), kNumeric);
    }
  }();
  if (code != kDone && code != kInterrupted) return code;  // a run that was stopped is a model, too
  const std::string run = training.run.path(), model = training.run.checkpoint(training.state.step);
  log(str("the model is ", model, "; next, for example:"));
  log(str("  ", evaluate_line(training.config, model), " --out EVAL"));
  log(str("  ucas report ", shell_word(run), " -o report.html"));
  return code;
}

// What was typed, read by each rank before any of them opens or loads anything.
struct TrainWords {
  std::string out, resume;
  std::unique_ptr<TrainObserver> observer;
  std::vector<Setting> settings;  // on --resume those that change
  std::vector<Setting> flags;     // allow-...
  std::optional<TrainConfig> config;
};

constexpr const char* kAuto = "auto";  // --resume auto: the run in --out where there is one, else a new one
constexpr const char* kOverPlan = "allow-over-plan";

// Problems that were made by a task of reasoning-gym are scored by the task, unless another reward is asked for.
void use_task_scorers(TrainConfig& config) {
  if (config.reward.from_outside() || !config.reward.weights.empty()) return;
  config.reward.python = kTaskScorers;
  config.validate();
  log("reward: the scorers of the problems' tasks in reasoning-gym (reward.python = reasoning_gym)");
}

// The config of a new run.
void read_config(const CommandLine& line, TrainWords& asked) {
  if (!line.positionals.empty()) asked.settings = read_config_file(line.positionals[0]);
  asked.settings.insert(asked.settings.end(), line.settings.begin(), line.settings.end());
  Refusals refuse(ErrorKind::config);
  refuse.attempt([&] { asked.config = make_train_config(asked.settings); });
  if (refuse.none()) refuse.attempt([&] { asked.config->validate(); });
  if (refuse.none()) refuse.attempt([&] { resolve_hub_names(*asked.config); });
  if (refuse.none() && std::ranges::any_of(asked.config->data.files, is_generated_file))
    use_task_scorers(*asked.config);
  const char* no_out = "--out RUN is missing: the directory that the run is written to";
  if (refuse.none() && asked.out.empty()) throw Error(ErrorKind::usage, no_out);
  if (asked.out.empty()) refuse(no_out);
  refuse.finish();
}

TrainWords read_train_words(const Words& words) {
  CommandLine line = parse_command_line(words, {"allow-changes", "allow-over-plan"});
  TrainWords asked;
  asked.out = take_option(line.settings, "out");
  asked.resume = take_option(line.settings, "resume");
  asked.observer = make_train_observer(parse_progress_mode(take_option(line.settings, "progress")));
  expand_short_forms(line.settings);
  if (line.positionals.size() > 1) {
    throw Error(ErrorKind::usage,
                str("one CONFIG at most, got ", join(line.positionals, " "), "; see ucas train --help"));
  }
  const auto is_flag = [&](const Setting& s) {
    return s.key == kOverPlan || (s.key == "allow-changes" && !asked.resume.empty());
  };
  std::ranges::copy_if(line.settings, std::back_inserter(asked.flags), is_flag);
  std::erase_if(line.settings, is_flag);
  if (asked.resume.empty() || asked.resume == kAuto) {
    read_config(line, asked);
    return asked;
  }
  if (!line.positionals.empty() || !asked.out.empty()) {
    throw Error(ErrorKind::usage, "--resume RUN uses that run's own config.toml: give neither CONFIG nor --out");
  }
  asked.settings = line.settings;
  return asked;
}

bool is_auto(const TrainWords& asked) { return asked.resume == kAuto && asked.config; }

// What the whole command says otherwise than the run that is there: changes, which may be refused.
std::vector<Setting> changes_of(const TrainConfig& config, const std::string& run) {
  std::map<std::string, std::string> before;
  for (const FieldValue& field : fields_of(make_train_config(read_toml(path_join(run, "config.toml"))))) {
    before[field.key] = field.value;
  }
  std::vector<Setting> changes;
  for (const FieldValue& field : fields_of(config)) {
    if (before[field.key] == field.value) continue;
    for (Setting& setting : parse_toml(str(field.key, " = ", field.value), "")) {
      setting.where = str("--", setting.key, " = ", field.value);
      changes.push_back(std::move(setting));
    }
  }
  return changes;
}

}  // namespace

int run_train(const Words& words) {
  return speaking_once([&](const std::shared_ptr<Ranks>& ranks) {
    TrainWords asked = ranks->together("reading the options", [&] { return read_train_words(words); });
    if (!ranks->leads()) asked.observer = std::make_unique<TrainObserver>();
    install_stop_signals();
    if (is_auto(asked)) {
      const bool there = ranks->leads() && exists(path_join(asked.out, "config.toml"));
      asked.resume = ranks->from_leader("whether there is a run", there ? "1" : "").empty() ? "" : asked.out;
      ranks->together("comparing the options with the run's", [&] {
        if (!asked.resume.empty()) asked.settings = changes_of(*asked.config, asked.resume);
      });
    }
    if (asked.resume.empty()) {
      const bool over_plan = std::ranges::find(asked.flags, kOverPlan, &Setting::key) != asked.flags.end();
      Training training = open_training(std::move(*asked.config), asked.out, command_text(words), over_plan, ranks);
      return train_to_the_end(std::move(training), *asked.observer);
    }
    asked.settings.insert(asked.settings.end(), asked.flags.begin(), asked.flags.end());
    return train_to_the_end(resume_training(asked.resume, asked.settings, ranks), *asked.observer);
  });
}

}  // namespace ucas

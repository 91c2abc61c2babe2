// `ucas run CONFIG`: a training, its evaluation next to the model that it began with, and the report, by the commands
// that do each of these.
#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "config/config_file.h"
#include "config/run_evaluation.h"
#include "config/train_config.h"
#include "data/problems.h"

namespace ucas {

namespace {

struct RunOptions {
  std::string out;
  std::vector<std::string> test;
  int64_t samples = 8;
  void fields(Fields& f) {
    f.field("out", out, "run directory; one that is there is resumed");
    f.field("test", test, OptionNames::evaluation_data,
            "problem files of the evaluation; empty = the validation files (--val)");
    f.field("samples", samples, Range{0, 1 << 20},
            "sampled responses per problem of the evaluation, besides the greedy one");
  }
};

void say_stage(const std::string& command, const Words& words) {
  std::string line = "ucas " + command;
  for (const std::string& word : words) line += " " + shell_word(word);
  log(line);
}

int stage(const char* command, const Words& words) {
  say_stage(command, words);
  return run_in_engine(command, words);
}

// The words of the training as they were typed: all but those of this command.
Words words_of_training(const Words& words, const std::vector<FieldValue>& known) {
  Words training;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] == "-o" ? "--out" : words[i];
    const size_t equals = word.find('=');
    const std::string key =
        word.starts_with("--") ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
    if (key.empty() || std::ranges::find(known, key, &FieldValue::key) == known.end()) {
      training.push_back(words[i]);
    } else if (equals == std::string::npos) {
      ++i;
    }
  }
  return training;
}

// What the training is, before it begins: an evaluation at its end must have problems that can be read.
void check_training(CommandLine& line, const RunOptions& options) {
  std::vector<Setting> settings = read_config_file(line.positionals[0]);
  expand_short_forms(line.settings);
  for (const Setting& s : line.settings) {
    if (s.key != "progress" && s.key != "allow-over-plan") settings.push_back(s);
  }
  const TrainConfig config = make_train_config(settings);
  config.validate();
  if (options.test.empty() && config.data.val_files.empty()) {
    throw Error(ErrorKind::usage,
                "run: nothing to evaluate on: give --test FILE, or --val FILE, which is validated on, too");
  }
  if (options.test.empty()) return;  // the training reads the validation files
  ProblemOptions reading;
  reading.columns = config.data.columns;
  reading.columns_where_there = true;
  read_problems(options.test, reading);
}

}  // namespace

std::string options_run() { return options_help(RunOptions{}); }

int run_run(const Words& words) {
  CommandLine line = parse_command_line(words, {"allow-over-plan"});
  RunOptions options;
  const std::vector<FieldValue> known = fields_of(options);
  take_own(options, line.settings);
  if (std::ranges::find(line.settings, "resume", &Setting::key) != line.settings.end()) {
    throw Error(ErrorKind::usage, "run: --resume is not needed: a run in --out is resumed");
  }
  if (line.positionals.size() != 1) throw Error(ErrorKind::usage, "run: expected one CONFIG; see `ucas run --help`");
  if (options.out.empty())
    throw Error(ErrorKind::usage, "--out RUN is missing: the directory that the run is written to");
  check_training(line, options);
  Words training = words_of_training(words, known);
  training.insert(training.end(), {"--out", options.out, "--resume", "auto"});
  if (const int code = stage("train", training); code != kDone) return code;

  const std::string evaluation = path_join(options.out, "evaluation");
  const TrainConfig trained = make_train_config(read_toml(path_join(options.out, "config.toml")));
  Words asked = {"base=" + trained.model,
                 "trained=" + options.out,
                 "--out",
                 evaluation,
                 "--samples",
                 str(options.samples),
                 "--device",
                 trained.device,
                 "--threads",
                 str(trained.threads)};
  for (const std::string& file : options.test) asked.insert(asked.end(), {"--data", file});
  if (const int code = stage("evaluate", asked); code != kDone) return code;

  const std::string page = path_join(options.out, "report.html");
  const Words shown = {options.out, path_join(evaluation, "base"), path_join(evaluation, "trained"), "-o", page};
  say_stage("report", shown);
  return run_report(shown);
}

}  // namespace ucas

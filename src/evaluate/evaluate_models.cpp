#include "evaluate/evaluate_models.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

// The last part of a path, or the last two for a checkpoint of a run: runs/dapo/checkpoints/step-0000024 is
// "dapo-step-0000024"; of a file of responses its name without its ending.
std::string label_of(const EvaluatedModel& model) {
  std::vector<std::string> parts;
  for (const std::string& part : split(model.path, '/')) {
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  if (parts.empty()) return "model";
  if (model.is_responses) return parts.back().substr(0, parts.back().rfind('.'));
  if (parts.size() >= 3 && parts[parts.size() - 2] == "checkpoints") {
    return parts[parts.size() - 3] + "-" + parts.back();
  }
  return parts.back();
}

EvaluatedModel model_of(const std::string& word, bool is_responses) {
  const size_t equals = word.find('=');
  const bool there = is_responses ? exists(word) : is_directory(word);
  const bool labelled = equals != std::string::npos && equals > 0 && word.find('/') > equals && !there;
  if (!labelled) return {"", word, is_responses};
  if (equals + 1 == word.size()) throw Error(ErrorKind::usage, str(printable(word), ": expected LABEL=DIR"));
  return {word.substr(0, equals), word.substr(equals + 1), is_responses};
}

void check_labels(const std::vector<EvaluatedModel>& models) {
  for (const EvaluatedModel& model : models) {
    const std::string& label = model.label;
    const bool once = std::ranges::count(models, label, &EvaluatedModel::label) == 1;
    if (once && !label.empty() && label.find('/') == std::string::npos && label[0] != '.') continue;
    throw Error(ErrorKind::config, str("the models' names: \"", printable(label),
                                       "\": expected different names that can be file names (LABEL=DIR)"));
  }
}

}  // namespace

std::vector<EvaluatedModel> read_models(const std::vector<std::string>& positionals,
                                        const std::vector<std::string>& responses) {
  std::vector<EvaluatedModel> models;
  for (const std::string& word : positionals) models.push_back(model_of(word, false));
  for (const std::string& word : responses) models.push_back(model_of(word, true));
  if (models.empty()) throw Error(ErrorKind::usage, "no MODEL directory given; see `ucas evaluate --help`");
  for (EvaluatedModel& model : models) {
    if (!model.label.empty()) continue;
    const std::string wanted = label_of(model);
    std::string label = wanted;
    for (int64_t n = 2; std::ranges::find(models, label, &EvaluatedModel::label) != models.end(); ++n) {
      label = str(wanted, "-", n);
    }
    model.label = label;
  }
  check_labels(models);
  return models;
}

CommandSettings command_settings(const EvaluateOptions& options, const std::vector<Setting>& typed) {
  const auto said = [&](const char* key) { return std::ranges::find(typed, key, &Setting::key) != typed.end(); };
  CommandSettings command;
  command.stop = options.stop;
  command.default_template = options.prompt_template;
  command.default_max_tokens = options.eval.max_tokens;
  if (said("template")) command.prompt_template = options.prompt_template;
  if (said("max_tokens")) command.max_tokens = options.eval.max_tokens;
  if (said("extract")) command.extract = ucas::said(options.extract);
  return command;
}

}  // namespace ucas

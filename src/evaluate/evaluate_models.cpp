#include "evaluate/evaluate_models.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr const char* kPrefix = "model.";
constexpr std::string_view kResponses = "responses:";

bool is_address(std::string_view path) { return path.starts_with("http://") || path.starts_with("https://"); }

// "127.0.0.1-8000" of http://127.0.0.1:8000/v1; the name of a file without its ending.
std::string label_of_other(const ModelSettings& model) {
  if (model.by == AnsweredBy::responses) {
    const std::string name = model.path.substr(model.path.find_last_of('/') + 1);
    return name.substr(0, name.rfind('.'));
  }
  std::string host = model.path.substr(model.path.find("//") + 2);
  host = host.substr(0, host.find('/'));
  std::ranges::replace(host, ':', '-');
  return host;
}

void tell_kind(ModelSettings& model) {
  if (model.path.starts_with(kResponses)) {
    model.path = model.path.substr(kResponses.size());
    model.by = AnsweredBy::responses;
  } else if (is_address(model.path)) {
    model.by = AnsweredBy::server;
  }
}

// Words of the command line have "_" for "-" in their keys (read_policy_line).
std::string with_underscores(std::string text) {
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

// The last part of a path, or the last two for a checkpoint of a run: runs/dapo/checkpoints/step-0000024 is
// "dapo-step-0000024".
std::string label_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::vector<std::string> parts;
  for (const std::string& part : split(path, '/')) {
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  if (parts.empty()) return "model";
  if (parts.size() >= 3 && parts[parts.size() - 2] == "checkpoints") {
    return parts[parts.size() - 3] + "-" + parts.back();
  }
  return parts.back();
}

ModelSettings positional(const std::string& word) {
  ModelSettings model;
  model.path = word;
  const size_t equals = word.find('=');
  const bool labelled = equals != std::string::npos && equals > 0 && word.find('/') > equals &&
                        !word.starts_with(kResponses) && !is_directory(word);
  if (labelled) {
    model.label = word.substr(0, equals);
    model.path = word.substr(equals + 1);
    if (model.path.empty()) throw Error(ErrorKind::usage, str(printable(word), ": expected LABEL=DIR"));
  }
  tell_kind(model);
  return model;
}

// "model.LABEL.KEY" -> LABEL, and `setting` with KEY. A label may have dots ("qwen-1.5b"), a key has none.
std::string take_label(Setting& setting) {
  const size_t first = std::char_traits<char>::length(kPrefix), dot = setting.key.rfind('.');
  if (dot <= first || dot == std::string::npos) {
    throw Error(ErrorKind::config, str(printable(setting.where), ": expected model.LABEL.KEY"));
  }
  const std::string label = setting.key.substr(first, dot - first);
  setting.key = setting.key.substr(dot + 1);
  return label;
}

void check_labels(const std::vector<ModelSettings>& models) {
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string& label = models[i].label;
    const bool twice = std::any_of(models.begin(), models.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const ModelSettings& other) { return other.label == label; });
    if (!twice && !label.empty() && label.find('/') == std::string::npos && label[0] != '.') continue;
    throw Error(ErrorKind::config, str("the models' names: \"", printable(label),
                                       "\": expected different names that can be file names (LABEL=DIR)"));
  }
}

void give_labels(std::vector<ModelSettings>& models) {
  for (ModelSettings& model : models) {
    if (!model.label.empty()) continue;
    const std::string wanted = model.by == AnsweredBy::checkpoint ? label_of(model.path) : label_of_other(model);
    std::string label = wanted;
    for (int64_t n = 2; std::ranges::find(models, label, &ModelSettings::label) != models.end(); ++n) {
      label = str(wanted, "-", n);
    }
    model.label = label;
  }
  check_labels(models);
}

}  // namespace

std::vector<ModelSettings> read_models(const std::vector<std::string>& positionals,
                                       const std::vector<Setting>& settings) {
  std::vector<ModelSettings> models;
  for (const std::string& word : positionals) models.push_back(positional(word));
  if (models.empty()) throw Error(ErrorKind::usage, "no MODEL directory given; see `ucas evaluate --help`");
  give_labels(models);
  std::map<std::string, std::vector<Setting>> typed;
  for (Setting setting : settings) {
    const std::string label = take_label(setting);
    typed[label].push_back(std::move(setting));
  }
  for (const auto& [label, own] : typed) {
    auto model = std::ranges::find_if(
        models, [&](const ModelSettings& m) { return with_underscores(m.label) == with_underscores(label); });
    if (model == models.end()) {
      std::vector<std::string> names;
      for (const ModelSettings& m : models) names.push_back(m.label);
      throw Error(ErrorKind::config, str(printable(own[0].where), ": there is no model of that name; there ",
                                         names.size() == 1 ? "is " : "are ", join(names, ", ")));
    }
    ucas::apply(*model, own);
  }
  return models;
}

std::vector<std::string> with_others(std::vector<std::string> positionals, const EvaluateOptions& options) {
  for (const std::string& word : options.server) {
    const std::string address = word.substr(word.find('=') + 1);
    if (!is_address(word) && !is_address(address)) {
      throw Error(ErrorKind::usage,
                  str("--server ", printable(word, 200), ": expected http://HOST:PORT/v1, or LABEL=http://.."));
    }
    positionals.push_back(word);
  }
  for (const std::string& word : options.responses) {
    const size_t equals = word.find('=');
    const bool labelled = equals != std::string::npos && equals > 0 && word.find('/') > equals && !exists(word);
    positionals.push_back(labelled ? str(word.substr(0, equals + 1), kResponses, word.substr(equals + 1))
                                   : str(kResponses, word));
  }
  return positionals;
}

std::vector<Setting> take_model_settings(PolicyLine& line) {
  std::vector<Setting> taken, rest;
  for (Setting& setting : line.settings) {
    (setting.key.starts_with(kPrefix) ? taken : rest).push_back(std::move(setting));
  }
  line.settings = std::move(rest);
  return taken;
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

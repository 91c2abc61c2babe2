#include "config/run_evaluation.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

// A value of a TOML file as the command line has it: a text without its quotes, a list of plain words with commas, any
// other as it is.
std::string typed(const std::string& value) {
  if (value.empty() || (value.front() != '"' && value.front() != '[')) return value;
  const Json read = parse_json(value, "an option");
  if (read.is_string()) return read.get<std::string>();
  std::vector<std::string> words;
  for (const Json& item : read) {
    const std::string word = item.is_string() ? item.get<std::string>() : json_text(item);
    const bool plain = std::ranges::none_of(word, [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (!plain || word.empty() || trim(word) != word || word.find_first_of(",\"[]") != std::string::npos) return value;
    words.push_back(word);
  }
  return words.empty() ? value : join(words, ",");
}

}  // namespace

EvaluateOptions evaluation_of(const TrainConfig& c) {
  EvaluateOptions o;
  o.data = c.data.val_files;
  o.problems.columns = c.data.columns;
  o.prompt_template = c.data.prompt_template;
  o.examples = c.data.examples;
  o.stop = c.rollout.stop;
  o.extract = c.reward.extract;
  o.grader = c.reward.grader;
  o.graders = c.reward.graders;
  o.code = c.reward.code;
  o.eval.max_tokens = c.rollout.response_length;
  o.eval.dtype = c.dtype;
  if (c.rollout.environment.some()) o.environment = c.rollout.environment;
  // A response that is masked in training has no loss there; it is graded all the same.
  o.eval.truncated = c.reward.truncated == Truncated::wrong ? Truncated::wrong : Truncated::grade;
  if (c.train.val_n > 0) {
    o.eval.samples = c.train.val_n;
    o.eval.temperature = 1.0;
  }
  return o;
}

std::vector<Setting> evaluation_settings(const TrainConfig& config) {
  EvaluateOptions defaults;
  defaults.eval.dtype =
      decided(defaults.eval.dtype, defaults.machine.device);  // where the line's device is its default
  const std::vector<FieldValue> usual = fields_of(defaults), values = fields_of(evaluation_of(config));
  std::vector<Setting> settings;
  for (size_t i = 0; i < values.size(); ++i) {
    // What these say of the response is said even where it is the default of today.
    const bool always = values[i].key == "max_tokens" || values[i].key == "template" || values[i].key == "extract";
    if (values[i].value == usual[i].value && !always) continue;
    settings.push_back({values[i].key, typed(values[i].value), "--" + values[i].key, true});
  }
  return settings;
}

std::string evaluate_line(const TrainConfig& config, const std::string& model) {
  std::string line = str("ucas evaluate ", shell_word(model));
  if (config.data.val_files.empty()) line += " --data FILE.jsonl";
  for (const Setting& setting : evaluation_settings(config)) {
    line += str(" --", setting.key, " ", shell_word(std::get<std::string>(setting.value)));
  }
  return line;
}

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-+=./,:@%") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string run_of_model(const std::string& path) {
  const auto is_run = [](const std::filesystem::path& place) {
    return exists((place / "config.toml").string()) && is_directory((place / "checkpoints").string());
  };
  std::filesystem::path place = std::filesystem::path(path).lexically_normal();
  if (place.filename().empty()) place = place.parent_path();
  if (is_run(place)) return place.string();
  const std::filesystem::path above = place.parent_path();
  if (above.filename() != "checkpoints") return "";
  const std::filesystem::path run = above.has_parent_path() ? above.parent_path() : ".";
  return is_run(run) ? run.string() : "";
}

}  // namespace ucas

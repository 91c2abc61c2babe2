#include "report/run_reader.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "report/eval_reader.h"
#include "report/json_rows.h"

namespace ucas {

namespace {

constexpr int64_t kSmallFile = 4 << 20;

// Columns are as long as the table: a name that holds a step or an id would make a column of each.
constexpr size_t kMostMetrics = 2000, kMostValues = size_t{1} << 26;

void check_size(const StepTable& table, const std::string& where) {
  const size_t names = table.column.size(), steps = table.step.size();
  if (names <= kMostMetrics && names * steps <= kMostValues) return;
  throw Error("limit", str(where, ": ", grouped(static_cast<int64_t>(names)), " different metrics by step ",
                           table.step.back(), ", expected at most ", grouped(static_cast<int64_t>(kMostMetrics)),
                           ", and with all steps at most ", grouped(static_cast<int64_t>(kMostValues)),
                           " values; does the name of a metric hold a step or an id?"));
}

void read_steps(RunRecord& run, const std::string& path) {
  StepTable& table = run.steps;
  each_line(path, run.remarks, [&](const Json& row, const std::string& where) {
    int64_t number = whole_at(row, "training/global_step", where, -1);
    if (number < 0) throw Error("data_line", str(where, ": training/global_step is missing or negative"));
    auto step = static_cast<double>(number);
    if (!table.step.empty() && step <= table.step.back()) {
      throw Error("data_line",
                  str(where, ": step ", step, " after step ", table.step.back(), ", expected a later one"));
    }
    size_t index = table.step.size();
    table.step.push_back(step);
    for (auto& [key, column] : table.column) column.push_back(kUnknown);
    for (auto it = row.begin(); it != row.end(); ++it) {
      if (it->is_null()) {
        if (!table.column.contains(it.key())) table.column[it.key()].assign(index + 1, kUnknown);
        table.not_finite.emplace_back(it.key(), step);
        continue;
      }
      if (!it->is_number()) refuse(where, it.key(), *it, "a number or null");
      auto& column = table.column[it.key()];
      column.resize(index + 1, kUnknown);
      column[index] = it->get<double>();
    }
    check_size(table, where);
  });
}

void read_sft(RunRecord& run, const std::string& path) {
  each_line(path, run.remarks, [&](const Json& row, const std::string& where) {
    run.sft.step.push_back(number_at(row, "step", where));
    run.sft.loss.push_back(number_at(row, "loss", where));
    run.sft.lr.push_back(number_at(row, "lr", where));
    run.sft.tokens.push_back(number_at(row, "tokens", where));
  });
}

std::string plain_text(const Json& value) {
  if (value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_string(); })) {
    return join(value.get<std::vector<std::string>>(), "; ");
  }
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read_env(RunRecord& run, const std::string& path) {
  Json env = read_json(path, kSmallFile);
  object_of(env, path);
  for (auto it = env.begin(); it != env.end(); ++it) {
    if (!it->is_null()) run.env[it.key()] = plain_text(*it);
  }
}

// How a study calls this run: {"row", "base", "seed"}; the untrained base has no seed.
void read_study_label(RunRecord& run, const std::string& path) {
  Json label = read_json(path, kSmallFile);
  object_of(label, path);
  run.row = text_at(label, "row", path);
  run.base = text_at(label, "base", path);
  run.seed = whole_at(label, "seed", path, -1);
  if (run.row.empty()) throw Error("header_json", str(path, ": \"row\" is missing, expected the row of a study"));
}

std::string setting_text(const Setting& setting) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          return join(value, ", ");
        } else if constexpr (std::is_same_v<Value, std::vector<int64_t>>) {
          std::vector<std::string> texts;
          for (int64_t item : value) texts.push_back(str(item));
          return join(texts, ", ");
        } else {
          return str(value);
        }
      },
      setting.value);
}

int64_t line_of(const Setting& setting) {
  size_t colon = setting.where.rfind(':');
  return colon == std::string::npos ? 0 : std::strtoll(setting.where.c_str() + colon + 1, nullptr, 10);
}

void read_config(RunRecord& run, const std::string& path) {
  std::vector<Setting> settings = read_toml(path);
  std::stable_sort(settings.begin(), settings.end(),
                   [](const Setting& a, const Setting& b) { return line_of(a) < line_of(b); });
  for (const Setting& setting : settings) {
    run.config.emplace_back(setting.key, setting_text(setting));
    if (setting.key == "seed" || setting.key == "train.seed") {
      const int64_t* seed = std::get_if<int64_t>(&setting.value);
      if (!seed) throw Error("config", str(setting.where, ": ", setting.key, ": expected a whole number"));
      run.seed = *seed;
    }
  }
  run.method = run.setting("method.name");
  run.label = run.setting("label");
  if (run.label.empty()) run.label = run.setting("train.label");
}

std::vector<StoredResponse> read_rollouts(RunRecord& run, const std::string& path) {
  std::vector<StoredResponse> rollouts;
  each_line(path, run.remarks, [&](const Json& row, const std::string& where) {
    StoredResponse r;
    r.step = whole_at(row, "step", where, 0);
    r.sample = whole_at(row, "sample", where, 0);
    r.tokens = whole_at(row, "tokens", where, -1);
    r.problem = text_at(row, "problem", where);
    r.source = text_at(row, "source", where);
    r.prompt = text_at(row, "prompt", where);
    r.response = text_at(row, "response", where);
    r.verdict = text_at(row, "verdict", where);
    r.answer = text_at(row, "answer", where);
    r.reason = text_at(row, "reason", where);
    r.gold = texts_at(row, "gold", where);
    if (const Json* finished = member(row, "finished")) {
      if (!finished->is_boolean()) refuse(where, "finished", *finished, "true or false");
      r.finished = finished->get<bool>();
    }
    r.score = number_at(row, "score", where);
    r.reward = number_at(row, "reward", where);
    r.advantage = number_at(row, "advantage_mean", where);
    rollouts.push_back(std::move(r));
  });
  return rollouts;
}

// Names in `directory` that end with `suffix`, without it.
std::vector<std::string> stems(const std::string& directory, const std::string& suffix) {
  std::vector<std::string> found;
  if (!is_directory(directory)) return found;
  for (const std::string& name : list_directory(directory)) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      found.push_back(name.substr(0, name.size() - suffix.size()));
    }
  }
  return found;
}

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  size_t slash = path.rfind('/');
  return slash == std::string::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

}  // namespace

// An evaluation's own seed is that of its samples, not of the model.
int64_t seed_in_name(const std::string& name) {
  size_t at = name.rfind("seed");
  std::string digits = at == std::string::npos ? "" : name.substr(at + 4);
  bool number = !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stoll(digits) : -1;
}

const std::vector<double>* StepTable::find(const std::string& key) const {
  auto found = column.find(key);
  return found == column.end() ? nullptr : &found->second;
}

double StepTable::last(const std::string& key) const {
  const auto* values = find(key);
  if (!values) return kUnknown;
  auto known = std::find_if(values->rbegin(), values->rend(), [](double v) { return !std::isnan(v); });
  return known == values->rend() ? kUnknown : *known;
}

double StepTable::first(const std::string& key) const {
  const auto* values = find(key);
  if (!values) return kUnknown;
  auto known = std::find_if(values->begin(), values->end(), [](double v) { return !std::isnan(v); });
  return known == values->end() ? kUnknown : *known;
}

std::string RunRecord::setting(const std::string& key) const {
  for (const auto& [name, value] : config) {
    if (name == key) return value;
  }
  return "";
}

std::string RunRecord::environment(const std::string& key) const {
  auto found = env.find(key);
  return found == env.end() ? "" : found->second;
}

RunRecord read_run(const std::string& path) {
  if (!is_directory(path)) {
    throw Error("path", str(printable(path, 400), exists(path) ? ": not a directory" : ": no such directory",
                            ", expected a run directory (what `ucas train --out` writes)"));
  }
  RunRecord run;
  run.path = path;
  run.name = last_part(path);
  auto in_run = [&](const char* name) { return path_join(path, name); };
  auto optional = [&](const char* name, const char* what, auto read) {
    if (exists(in_run(name))) {
      read(run, in_run(name));
    } else {
      run.missing.push_back(str(name, " (", what, ")"));
    }
  };
  optional("config.toml", "the settings", read_config);
  optional("env.json", "the machine and the versions", read_env);
  optional("steps.jsonl", "the training curves", read_steps);
  if (exists(in_run("study.json"))) read_study_label(run, in_run("study.json"));
  if (run.row.empty()) run.base = run.environment("initial_weights");
  if (exists(in_run("sft.jsonl"))) read_sft(run, in_run("sft.jsonl"));
  std::string eval = in_run("eval");
  for (const std::string& name : stems(eval, ".json")) {
    if (name.ends_with(".card")) continue;  // beside its evaluation
    run.evaluations.push_back(read_evaluation(eval, name, run.missing, run.remarks));
  }
  if (run.evaluations.empty()) run.missing.push_back("eval/*.json (evaluations on test problems)");
  std::string rollouts = in_run("rollouts");
  std::vector<std::string> stored = stems(rollouts, ".jsonl");
  if (!stored.empty()) {
    run.first_rollouts = read_rollouts(run, path_join(rollouts, stored.front() + ".jsonl"));
    if (stored.size() > 1) run.last_rollouts = read_rollouts(run, path_join(rollouts, stored.back() + ".jsonl"));
  } else if (!run.steps.empty()) {
    run.missing.push_back("rollouts/*.jsonl (responses sampled in training)");
  }
  if (run.label.empty()) run.label = run.environment("label");
  if (run.seed < 0 && run.row.empty()) run.seed = seed_in_name(run.name);
  for (const EvalRecord& evaluation : run.evaluations) {
    if (run.seed < 0 && run.row.empty()) run.seed = evaluation.seed;
  }
  if (run.steps.empty() && run.evaluations.empty() && run.sft.step.empty()) {
    throw Error("empty", str(printable(path, 400),
                             ": holds none of steps.jsonl, sft.jsonl, eval/*.json; "
                             "nothing to report (is it a run directory?)"));
  }
  if (run.steps.empty()) {  // an evaluation alone: training parts are not missed
    std::erase_if(run.missing, [](const std::string& part) {
      return part.starts_with("config.toml") || part.starts_with("steps.jsonl");
    });
  }
  return run;
}

}  // namespace ucas

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

namespace ucas {

namespace {

constexpr int64_t kSmallFile = 4 << 20;
constexpr int64_t kLargeFile = int64_t{1} << 30;

[[noreturn]] void refuse(const std::string& where, const std::string& key, const Json& got, const char* expected) {
  throw Error("data_line",
              str(where, ": \"", printable(key), "\": ", got.type_name(), " ",
                  printable(got.dump(-1, ' ', false, Json::error_handler_t::replace), 40), ", expected ", expected));
}

const Json* member(const Json& object, const char* key) {
  auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

double number_at(const Json& object, const char* key, const std::string& where) {
  const Json* value = member(object, key);
  if (!value) return kUnknown;
  if (!value->is_number()) refuse(where, key, *value, "a number or null");
  return value->get<double>();
}

int64_t whole_at(const Json& object, const char* key, const std::string& where, int64_t otherwise) {
  const Json* value = member(object, key);
  if (!value) return otherwise;
  double number = value->is_number() ? value->get<double>() : kUnknown;
  if (!(std::fabs(number) < 9e15) || number != std::floor(number)) refuse(where, key, *value, "a whole number");
  return static_cast<int64_t>(number);
}

std::string text_at(const Json& object, const char* key, const std::string& where) {
  const Json* value = member(object, key);
  if (!value) return "";
  if (!value->is_string()) refuse(where, key, *value, "a text");
  return value->get<std::string>();
}

std::vector<std::string> texts_at(const Json& object, const char* key, const std::string& where) {
  const Json* value = member(object, key);
  std::vector<std::string> texts;
  if (!value) return texts;
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) refuse(where, key, *value, "a list of texts");
  for (const Json& item : *value) {
    if (!item.is_string()) refuse(where, key, item, "a text in the list");
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

Figure interval_of(const Json& object, const std::string& where) {
  return {number_at(object, "value", where), number_at(object, "low", where), number_at(object, "high", where)};
}

const Json& object_of(const Json& value, const std::string& where) {
  if (!value.is_object()) throw Error("data_line", str(where, ": a ", value.type_name(), ", expected an object"));
  return value;
}

// Calls each(row, "FILE:LINE") for every line. A last line without its newline that is not JSON was being written when
// the run stopped: it is left out and remarked.
void each_line(const std::string& path, std::vector<std::string>& remarks,
               const std::function<void(const Json&, const std::string&)>& each) {
  std::string bytes = read_file(path, kLargeFile);
  std::string_view rest = bytes;
  for (int64_t line = 1; !rest.empty(); ++line) {
    size_t end = rest.find('\n');
    std::string_view text = trim(rest.substr(0, end));
    std::string where = str(path, ":", line);
    if (!text.empty()) {
      std::optional<Json> row;
      try {
        row = parse_json(text, where);
      } catch (const Error&) {
        if (end != std::string_view::npos) throw;
        remarks.push_back(str(where, ": incomplete last line left out"));
      }
      if (row) each(object_of(*row, where), where);
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
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
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read_env(RunRecord& run, const std::string& path) {
  Json env = read_json(path, kSmallFile);
  object_of(env, path);
  for (auto it = env.begin(); it != env.end(); ++it) {
    if (!it->is_null()) run.env[it.key()] = plain_text(*it);
  }
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

SampledResponse sampled_response(const Json& row, const std::string& where) {
  object_of(row, where);
  return {text_at(row, "response", where), text_at(row, "verdict", where), text_at(row, "answer", where),
          whole_at(row, "tokens", where, -1)};
}

std::vector<FigureAt> at_k(const Json& root, const char* key, const std::string& where) {
  std::vector<FigureAt> list;
  const Json* value = member(root, key);
  if (!value) return list;
  if (!value->is_array()) refuse(where, key, *value, "a list of {k, value, low, high}");
  for (const Json& item : *value) {
    object_of(item, str(where, ": ", key));
    int64_t k = whole_at(item, "k", where, 0);
    if (k < 1) throw Error("data_line", str(where, ": ", key, ": k is ", k, ", expected at least 1"));
    list.push_back({k, interval_of(item, where)});
  }
  std::sort(list.begin(), list.end(), [](const FigureAt& a, const FigureAt& b) { return a.k < b.k; });
  return list;
}

EvalRecord read_evaluation(RunRecord& run, const std::string& directory, const std::string& name) {
  EvalRecord result;
  result.name = name;
  std::string path = path_join(directory, name + ".json");
  Json root = read_json(path, kSmallFile);
  object_of(root, path);
  result.label = text_at(root, "label", path);
  result.model = text_at(root, "model", path);
  result.data = join(texts_at(root, "data", path), ", ");
  result.interval = text_at(root, "interval", path);
  result.step = whole_at(root, "step", path, 0);
  result.problems = whole_at(root, "problems", path, 0);
  result.samples = whole_at(root, "samples", path, 0);
  result.seed = whole_at(root, "seed", path, -1);
  result.temperature = number_at(root, "temperature", path);
  result.entropy = number_at(root, "entropy", path);
  result.length = number_at(root, "length", path);
  result.truncated = number_at(root, "truncated_share", path);
  result.unparseable = number_at(root, "unparseable_share", path);
  if (const Json* greedy = member(root, "greedy")) {
    object_of(*greedy, str(path, ": greedy"));
    if (const Json* pass = member(*greedy, "pass@1")) {
      result.greedy = interval_of(object_of(*pass, str(path, ": greedy.pass@1")), path);
    }
  }
  result.mean_at = at_k(root, "mean@k", path);
  result.pass_at = at_k(root, "pass@k", path);
  std::string rows = path_join(directory, name + ".jsonl");
  if (!exists(rows)) {
    run.missing.push_back(str("eval/", name, ".jsonl (the responses of each problem)"));
    return result;
  }
  each_line(rows, run.remarks, [&](const Json& row, const std::string& where) {
    ProblemRow problem;
    problem.id = text_at(row, "id", where);
    problem.source = text_at(row, "source", where);
    problem.problem = text_at(row, "problem", where);
    problem.gold = texts_at(row, "gold", where);
    if (const Json* greedy = member(row, "greedy")) {
      problem.has_greedy = true;
      problem.greedy = sampled_response(*greedy, where + ": greedy");
    }
    problem.samples = whole_at(row, "samples", where, 0);
    problem.correct = whole_at(row, "correct", where, 0);
    if (const Json* responses = member(row, "responses")) {
      if (!responses->is_array()) refuse(where, "responses", *responses, "a list");
      for (const Json& item : *responses) problem.responses.push_back(sampled_response(item, where + ": responses"));
    }
    result.rows.push_back(std::move(problem));
  });
  return result;
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

// "base-seed2" -> 2, otherwise -1: an evaluation's own seed is that of its samples, not of the model.
int64_t seed_in_name(const std::string& name) {
  size_t at = name.rfind("seed");
  std::string digits = at == std::string::npos ? "" : name.substr(at + 4);
  bool number = !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stoll(digits) : -1;
}

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  size_t slash = path.rfind('/');
  return slash == std::string::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

}  // namespace

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
  if (exists(in_run("sft.jsonl"))) read_sft(run, in_run("sft.jsonl"));
  std::string eval = in_run("eval");
  for (const std::string& name : stems(eval, ".json")) run.evaluations.push_back(read_evaluation(run, eval, name));
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
  if (run.seed < 0) run.seed = seed_in_name(run.name);
  for (const EvalRecord& evaluation : run.evaluations) {
    if (run.seed < 0) run.seed = evaluation.seed;
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

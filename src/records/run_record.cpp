#include "records/run_record.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/fields.h"
#include "base/text/json.h"
#include "records/run/run_directory.h"

namespace ucas {

namespace {

constexpr int64_t kSmallFile = 4 << 20;

void read_env(RunRecord& run, const std::string& path) { run.env = read_environment(path); }

void read_log(RunRecord& run, const std::string& path) { run.steps = read_steps(path, run.remarks); }

// How a study calls this run: {"row", "base", "seed"}; the untrained base has no seed.
void read_study_label(RunRecord& run, const std::string& path) {
  const JsonObject label = JsonObject::read(path, kSmallFile);
  run.row = label.text_or("row", "");
  run.base = label.text_or("base", "");
  run.seed = label.whole_or("seed", -1);
  if (run.row.empty()) label.refuse("\"row\" is missing, expected the row of a study");
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

int64_t line_number(const Setting& setting) {
  size_t colon = setting.where.rfind(':');
  return colon == std::string::npos ? 0 : std::strtoll(setting.where.c_str() + colon + 1, nullptr, 10);
}

void read_config(RunRecord& run, const std::string& path) {
  std::vector<Setting> settings = read_toml(path);
  std::stable_sort(settings.begin(), settings.end(),
                   [](const Setting& a, const Setting& b) { return line_number(a) < line_number(b); });
  for (const Setting& setting : settings) {
    run.config.emplace_back(setting.key, setting_text(setting));
    if (setting.key == "seed") {
      const int64_t* seed = std::get_if<int64_t>(&setting.value);
      if (!seed) throw Error(ErrorKind::config, str(setting.where, ": ", setting.key, ": expected a whole number"));
      run.seed = *seed;
    }
  }
  run.method = run.setting("method.name");
  run.label = run.setting("label");
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
    throw Error(ErrorKind::path, str(printable(path, 400), exists(path) ? ": not a directory" : ": no such directory",
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
  optional("steps.jsonl", "the training curves", read_log);
  if (exists(in_run("study.json"))) read_study_label(run, in_run("study.json"));
  if (run.row.empty()) run.base = run.environment("initial_weights");
  if (exists(in_run("sft.jsonl"))) run.sft = read_sft_steps(in_run("sft.jsonl"), run.remarks);
  std::string eval = in_run("eval");
  for (const std::string& name : stems(eval, ".json")) {
    run.evaluations.push_back(read_evaluation(eval, name, run.missing, run.remarks));
  }
  if (run.evaluations.empty()) run.missing.push_back("eval/*.json (evaluations on test problems)");
  std::string rollouts = in_run("rollouts");
  std::vector<std::string> stored = stems(rollouts, ".jsonl");
  if (!stored.empty()) {
    run.first_rollouts = read_rollouts(path_join(rollouts, stored.front() + ".jsonl"), run.remarks);
    if (stored.size() > 1)
      run.last_rollouts = read_rollouts(path_join(rollouts, stored.back() + ".jsonl"), run.remarks);
  } else if (!run.steps.empty()) {
    run.missing.push_back("rollouts/*.jsonl (responses sampled in training)");
  }
  if (run.label.empty()) run.label = run.environment("label");
  if (run.seed < 0 && run.row.empty()) run.seed = seed_in_name(run.name);
  for (const EvalRecord& evaluation : run.evaluations) {
    if (run.seed < 0 && run.row.empty()) run.seed = evaluation.config.seed;
  }
  if (run.steps.empty() && run.evaluations.empty() && run.sft.step.empty()) {
    throw Error(ErrorKind::empty, str(printable(path, 400),
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

namespace {

// Whether the evaluation is of exactly these files.
bool is_of(const EvalRecord& evaluation, const std::vector<ModelFile>& files) {
  return evaluation.asked && std::ranges::all_of(files, [&](const ModelFile& file) {
           return std::ranges::find(evaluation.asked->model_files, file) != evaluation.asked->model_files.end();
         });
}

// Takes the evaluations of `other` that are of a checkpoint of the run. Only a checkpoint whose weights have the size
// that an evaluation names is read.
void take_evaluations(RunRecord& run, RunRecord& other) {
  const std::string checkpoints = path_join(run.path, "checkpoints");
  for (const std::string& name : is_directory(checkpoints) ? list_directory(checkpoints) : std::vector<std::string>{}) {
    const std::string checkpoint = path_join(checkpoints, name);
    const auto may_be = [&](const EvalRecord& e) {
      return e.asked && std::ranges::any_of(e.asked->model_files, [&](const ModelFile& file) {
               const std::string path = path_join(checkpoint, file.name);
               return file.name.ends_with(".safetensors") && exists(path) && file_size(path) == file.size;
             });
    };
    if (parse_step_name(name) < 0 || std::ranges::none_of(other.evaluations, may_be)) continue;
    const std::vector<ModelFile> files = hash_model_files(checkpoint);
    std::erase_if(other.evaluations, [&](EvalRecord& e) {
      if (!is_of(e, files)) return false;
      e.step = parse_step_name(name);
      run.evaluations.push_back(std::move(e));
      return true;
    });
  }
}

}  // namespace

std::vector<RunRecord> read_runs(const std::vector<std::string>& paths) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  const auto alone = [](const RunRecord& run) { return run.steps.empty() && run.sft.step.empty(); };
  for (RunRecord& run : runs) {
    for (RunRecord& other : runs) {
      if (!run.steps.empty() && alone(other)) take_evaluations(run, other);
    }
  }
  for (RunRecord& run : runs) {
    if (!run.evaluations.empty())
      std::erase_if(run.missing, [](const auto& part) { return part.starts_with("eval/"); });
  }
  std::erase_if(runs, [&](const RunRecord& run) { return alone(run) && run.evaluations.empty(); });
  return runs;
}

}  // namespace ucas

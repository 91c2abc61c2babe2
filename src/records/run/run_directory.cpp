#include "records/run/run_directory.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "core/metrics.h"
#include "hf/peft.h"
#include "records/run/manifest.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

constexpr int64_t kStepDigits = 7;
const std::vector<std::string> kFolders = {"checkpoints", "eval", "rollouts", "signals"};

// Before anything of a run is written, its lock too: the directory may have come from elsewhere.
void refuse_links_in(const std::string& path) {
  refuse_links(path, {".lock", "steps.jsonl", "model_files", "tensorboard"});
  refuse_links(path, kFolders);
}

// The step a line of steps.jsonl speaks of; -1 if it is no such line.
int64_t step_of_line(std::string_view line, const std::string& where) {
  try {
    const JsonObject row = JsonObject::parse(line, where);
    return row.whole_or(row.has(metric::training_global_step.key) ? metric::training_global_step.key : "step", -1);
  } catch (const Error&) {
    return -1;
  }
}

// Removes step-N files past `step` from a folder of the run, if it is there.
void remove_later_files(const std::string& folder, int64_t step) {
  if (!is_directory(folder)) return;
  for (const std::string& name : list_directory(folder)) {
    if (parse_step_name(name) > step) remove_all(path_join(folder, name));
  }
}

// A run has begun once config.toml is there. What a kill left before that (empty folders, env.json) is no run.
void refuse_run_in(const std::string& path) {
  for (const char* name : {"config.toml", "steps.jsonl", "checkpoints"}) {
    const std::string part = path_join(path, name);
    if (!exists(part) || (is_directory(part) && list_directory(part).empty())) continue;
    throw Error(ErrorKind::path, str(printable(path, 400), ": already holds a run (", name,
                                     "); resume it with --resume ", printable(path, 400), ", or choose another --out"));
  }
}

}  // namespace

std::string step_name(int64_t step) {
  UCAS_CHECK(step >= 0, "steps count from 0");
  std::string digits = str(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return "step-" + digits;
}

int64_t parse_step_name(const std::string& name) {
  std::string_view text = name;
  if (text.ends_with(".jsonl")) text.remove_suffix(6);
  if (!text.starts_with("step-")) return -1;
  text.remove_prefix(5);
  int64_t step = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size() || step < 0) return -1;
  return step_name(step).substr(5) == text ? step : -1;
}

RunDirectory::RunDirectory(std::string path, std::unique_ptr<FileLock> lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

namespace {

std::unique_ptr<FileLock> lock_of(const std::string& path) {
  return std::make_unique<FileLock>(path_join(path, ".lock"), path);
}

}  // namespace

void RunDirectory::check_free(const std::string& path) {
  refuse_run_in(path);
  if (exists(path) && !is_directory(path)) {
    throw Error(ErrorKind::path, str(printable(path, 400), ": a file is in the way; expected a directory to create"));
  }
}

RunDirectory RunDirectory::create(const std::string& path, const std::string& config_toml,
                                  const RunEnvironment& environment) {
  refuse_run_in(path);  // before a lock file is left in another directory
  refuse_links_in(path);
  make_directories(path);
  RunDirectory run(path, lock_of(path));
  refuse_run_in(path);  // another may have been quicker
  for (const std::string& folder : kFolders) make_directories(path_join(path, folder));
  for (const char* name : {"env.json", "config.toml"}) remove_leftovers(path, name);  // of a start that was killed
  write_environment(run.env_file(), environment);
  write_file(run.config_file(), config_toml);  // last: see refuse_run_in
  sync_directory(path);
  return run;
}

void RunDirectory::check_started(const std::string& path) {
  if (!is_directory(path)) throw Error(ErrorKind::path, str(printable(path, 400), ": no such run directory"));
  if (exists(path_join(path, "config.toml"))) return;
  throw Error(ErrorKind::path,
              str(printable(path, 400),
                  ": not a run directory (no config.toml in it: no run has begun here); give the whole command "
                  "with --out ",
                  printable(path, 400)));
}

RunDirectory RunDirectory::open(const std::string& path) {
  check_started(path);
  refuse_links_in(path);
  RunDirectory run(path, lock_of(path));
  for (const std::string& folder : kFolders) make_directories(path_join(path, folder));
  // eval/ has a lock for each evaluation, which clears up for itself; checkpoints/ are cleared by
  // train/state/checkpoint.
  for (const std::string& folder : {path, path_join(path, "rollouts"), path_join(path, "signals")}) {
    remove_leftovers(folder);
  }
  return run;
}

RunDirectory RunDirectory::watch(const std::string& path) {
  check_started(path);
  return {path, nullptr};
}

void RunDirectory::append_step(const std::string& json_line) {
  if (!writes()) return;
  UCAS_CHECK(json_line.find('\n') == std::string::npos, "a line of steps.jsonl is one line");
  if (!steps_) steps_ = std::make_unique<FileWriter>(steps_file(), true);
  keep_log_in_place();
  steps_->write(json_line + "\n");
  fault_point("step");
}

void RunDirectory::keep_log_in_place() const {
  const FileWriter::Place place = steps_->place();
  if (place == FileWriter::Place::kept || (place == FileWriter::Place::cut && said_cut_)) return;
  count_warning(Warning::moved_log);
  if (place == FileWriter::Place::cut) {
    said_cut_ = true;
    return warn(str(printable(steps_file(), 400),
                    ": was cut while this run writes it: its earlier lines are gone; put them back before "
                    "--resume"));
  }
  const std::string lines = steps_->read_back();
  write_file(steps_file(), lines);
  steps_ = std::make_unique<FileWriter>(steps_file(), true);
  warn(str(printable(steps_file(), 400), ": was moved or deleted while this run writes it: restored with its ",
           std::ranges::count(lines, '\n'), " lines"));
}

void RunDirectory::note_saved() {
  if (!writes() || noted_saved_) return;
  noted_saved_ = true;
  if (has_saved() == "no") set_in_environment(env_file(), "checkpoint_saved", "yes");
}

void RunDirectory::sync() const {
  if (!steps_) return;
  keep_log_in_place();
  steps_->sync();
  sync_directory(path_);
}

RunDirectory::LogLines RunDirectory::read_log(int64_t step) const {
  LogLines log;
  if (!exists(steps_file())) return log;
  const std::string text = read_file(steps_file());
  log.size = static_cast<int64_t>(text.size());
  size_t at = 0;
  for (int64_t number = 1; at < text.size(); ++number) {
    size_t end = text.find('\n', at);
    bool whole = end != std::string::npos;
    std::string_view line(text.data() + at, (whole ? end : text.size()) - at);
    std::string where = str(steps_file(), ":", number);
    int64_t found = whole ? step_of_line(line, where) : -1;
    if (found > step) break;
    if (found < 0) {
      // Only the last line can be torn; a broken one in the middle means that another program wrote here.
      if (whole && end + 1 < text.size())
        throw Error(ErrorKind::data_line, str(where, ": not a step's line; the log is damaged"));
      break;
    }
    log.steps.push_back(found);
    at = end + 1;
  }
  log.bytes = static_cast<int64_t>(at);
  return log;
}

void RunDirectory::cut_after(int64_t step) {
  if (!writes()) return;
  steps_.reset();
  remove_later_files(path_join(path_, "eval"), step);
  remove_later_files(path_join(path_, "rollouts"), step);
  remove_later_files(path_join(path_, "signals"), step);
  const LogLines log = read_log(step);
  if (log.bytes == log.size) return;
  truncate_file(steps_file(), log.bytes);
  FileWriter(steps_file(), true).close();  // makes the cut durable
}

int64_t RunDirectory::last_step() const {
  const LogLines log = read_log(std::numeric_limits<int64_t>::max());
  return log.steps.empty() ? -1 : log.steps.back();
}

std::string RunDirectory::missing_steps(int64_t step) const {
  std::vector<int64_t> steps = read_log(step).steps;
  steps.push_back(step + 1);
  std::vector<std::string> gaps;
  int64_t expected = 1;
  for (int64_t found : steps) {
    if (found == expected + 1) gaps.push_back(str(expected));
    if (found > expected + 1) gaps.push_back(str(expected, " to ", found - 1));
    expected = std::max(expected, found + 1);
  }
  return join(gaps, ", ");
}

std::string RunDirectory::environment(const std::string& key) const {
  return exists(env_file()) ? read_environment(env_file())[key] : "";
}

std::string tokenizer_directory(const RunDirectory& run, const std::string& from, const std::string& otherwise) {
  if (check_seal(run.model_files(), true).problem.empty()) return run.model_files();
  return exists(path_join(from, "tokenizer.json")) ? from : otherwise;
}

void keep_model_files(const RunDirectory& run, const std::string& from, const std::string& otherwise) {
  const std::string target = run.model_files(), temporary = path_join(run.path(), ".tmp-model_files");
  if (exists(target)) {
    SealCheck check = check_seal(target, true);
    if (check.problem.empty()) return;
    warn(str(target, ": ", check.problem, "; restored from ", from));
    remove_all(target);
  }
  if (exists(temporary)) remove_all(temporary);  // of a start that was killed
  make_directories(temporary);
  copy_tokenizer_files(tokenizer_directory(run, from, otherwise), temporary);
  for (const char* name : {"config.json", "generation_config.json"}) {
    const std::string source = path_join(directory_with(from, name), name);
    if (exists(source)) write_file(path_join(temporary, name), read_file(source));
  }
  seal_directory(temporary, 0);
  sync_directory(temporary);
  rename_path(temporary, target);
}

void check_model_files(const std::string& directory) {
  SealCheck check = check_seal(directory, true);
  if (check.problem.empty()) return;
  throw Error(ErrorKind::io,
              str(directory, ": ", check.problem, ": without it a checkpoint is no model; resume with --resume, which ",
                  "makes it again from the last checkpoint"),
              kIoFailure);
}

namespace {

constexpr int64_t kEnvironmentLimit = int64_t{4} << 20;
constexpr const char* kRemarks = "remarks";

std::string plain_text(const Json& value) {
  if (value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_string(); })) {
    return join(value.get<std::vector<std::string>>(), "; ");
  }
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

void write_json(const std::string& file, const OrderedJson& json) { write_file(file, json_text(json, 2) + "\n"); }

}  // namespace

std::string utc_now() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void write_environment(const std::string& file, const RunEnvironment& e) {
  OrderedJson json = OrderedJson::object();
  const auto add = [&](const char* key, const auto& value) {
    if (value != std::decay_t<decltype(value)>{}) json[key] = value;
  };
  add("label", e.label);
  add("version", e.version);
  add("torch", e.torch);
  add("isa", e.isa);
  add("isa_reason", e.isa_reason);
  add("device", e.device);
  add("threads", e.threads);
  add("started", e.started);
  add("model", e.model);
  add("data", e.data);
  add("method", e.method);
  add("command", e.command);
  add("initial_weights", e.initial_weights);
  add("training_data", e.training_data);
  add("about", e.about);
  add("parameters", e.parameters);
  add("planned_memory", e.planned_memory);
  add("rollout_slots", e.rollout_slots);
  add("rollout_cache_tokens", e.rollout_cache_tokens);
  add("checkpoint_saved", e.checkpoint_saved);
  write_json(file, json);
}

std::map<std::string, std::string> read_environment(const std::string& file) {
  std::map<std::string, std::string> texts;
  const JsonObject env = JsonObject::read(file, kEnvironmentLimit, ErrorKind::data_line);
  for (const std::string& key : env.keys()) {
    if (const Json* value = env.find(key)) texts[key] = plain_text(*value);
  }
  return texts;
}

std::vector<std::string> read_remarks(const std::string& file) {
  std::vector<std::string> texts;
  if (!exists(file)) return texts;
  const JsonObject env = JsonObject::read(file, kEnvironmentLimit, ErrorKind::data_line);
  const Json* list = env.find(kRemarks);
  for (const Json& text : list && list->is_array() ? *list : Json::array()) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

void add_remark(const std::string& file, const std::string& text) {
  std::vector<std::string> all = read_remarks(file);
  if (std::ranges::find(all, text) != all.end()) return;
  all.push_back(text);
  OrderedJson env = exists(file) ? parse_ordered_json(read_file(file)) : OrderedJson::object();  // checked above
  env[kRemarks] = all;
  write_json(file, env);
}

void set_in_environment(const std::string& file, const std::string& key, const std::string& text) {
  read_environment(file);  // refuses what is no such file
  OrderedJson env = parse_ordered_json(read_file(file));
  env[key] = text;
  write_json(file, env);
}

}  // namespace ucas

#include "core/run_directory.h"

#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr int64_t kStepDigits = 7;

std::string environment_json(const RunEnvironment& e) {
  OrderedJson json;
  json["version"] = e.version;
  json["torch"] = e.torch;
  json["isa"] = e.isa;
  json["isa_reason"] = e.isa_reason;
  json["device"] = e.device;
  json["threads"] = e.threads;
  json["started"] = e.started;
  json["model"] = e.model;
  json["data"] = e.data;
  json["method"] = e.method;
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

// The step a line of steps.jsonl speaks of; -1 if it is no such line.
int64_t step_of_line(std::string_view line, const std::string& where) {
  try {
    Json json = parse_json(line, where);
    for (const char* key : {"training/global_step", "step"}) {
      if (!json.is_object() || !json.contains(key)) continue;
      const Json& value = json[key];
      if (value.is_number_integer()) return value.get<int64_t>();
    }
  } catch (const Error&) {
    return -1;
  }
  return -1;
}

// Removes step-N files past `step` from a folder of the run, if it is there.
void remove_later_files(const std::string& folder, int64_t step) {
  if (!is_directory(folder)) return;
  for (const std::string& name : list_directory(folder)) {
    std::string of_step = name.substr(0, name.find(".methods.json"));  // beside step data: core/step_methods.h
    if (parse_step_name(of_step) > step) remove_all(path_join(folder, name));
  }
}

void refuse_run_in(const std::string& path) {
  for (const char* name : {"config.toml", "steps.jsonl", "checkpoints"}) {
    if (!exists(path_join(path, name))) continue;
    throw Error("path", str(printable(path, 400), ": already holds a run (", name, "); go on with it by --resume ",
                            printable(path, 400), ", or choose another --out"));
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

std::string utc_now() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

RunDirectory::RunDirectory(std::string path)
    : path_(std::move(path)), lock_(std::make_unique<FileLock>(path_join(path_, ".lock"))) {}

RunDirectory RunDirectory::create(const std::string& path, const std::string& config_toml,
                                  const RunEnvironment& environment) {
  refuse_run_in(path);  // before a lock file is left in somebody's directory
  make_directories(path);
  RunDirectory run(path);
  refuse_run_in(path);  // another may have been quicker
  for (const char* folder : {"checkpoints", "eval", "rollouts", "signals"}) make_directories(path_join(path, folder));
  write_file(run.env_file(), environment_json(environment));
  write_file(run.config_file(), config_toml);
  sync_directory(path);
  return run;
}

RunDirectory RunDirectory::open(const std::string& path) {
  if (!is_directory(path)) throw Error("path", str(printable(path, 400), ": no such run directory"));
  if (!exists(path_join(path, "config.toml"))) {
    throw Error("path",
                str(printable(path, 400), ": not a run directory (no config.toml in it); start one with --out"));
  }
  RunDirectory run(path);
  for (const char* folder : {"checkpoints", "eval", "rollouts", "signals"}) make_directories(path_join(path, folder));
  return run;
}

void RunDirectory::append_step(const std::string& json_line) {
  UCAS_CHECK(json_line.find('\n') == std::string::npos, "a line of steps.jsonl is one line");
  if (!steps_) steps_ = std::make_unique<FileWriter>(steps_file(), true);
  steps_->write(json_line + "\n");
}

void RunDirectory::sync() const {
  if (!steps_) return;
  steps_->sync();
  sync_directory(path_);
}

void RunDirectory::cut_after(int64_t step) {
  steps_.reset();
  remove_later_files(path_join(path_, "eval"), step);
  remove_later_files(path_join(path_, "rollouts"), step);
  remove_later_files(path_join(path_, "signals"), step);
  if (!exists(steps_file())) return;
  std::string text = read_file(steps_file());
  size_t at = 0;
  for (int64_t number = 1; at < text.size(); ++number) {
    size_t end = text.find('\n', at);
    bool whole = end != std::string::npos;
    std::string_view line(text.data() + at, (whole ? end : text.size()) - at);
    std::string where = str(steps_file(), ":", number);
    int64_t found = whole ? step_of_line(line, where) : -1;
    if (found > step) break;
    if (found < 0) {
      // Only the last line can be torn; a broken one in the middle means that somebody else wrote here.
      if (whole && end + 1 < text.size())
        throw Error("data_line", str(where, ": not a step's line; the log is damaged"));
      break;
    }
    at = end + 1;
  }
  if (at == text.size()) return;
  truncate_file(steps_file(), static_cast<int64_t>(at));
  FileWriter(steps_file(), true).close();  // makes the cut durable
}

}  // namespace ucas

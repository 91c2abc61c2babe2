#include "records/run/environment.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

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
  OrderedJson env = exists(file) ? OrderedJson::parse(read_file(file)) : OrderedJson::object();  // checked above
  env[kRemarks] = all;
  write_json(file, env);
}

void set_in_environment(const std::string& file, const std::string& key, const std::string& text) {
  read_environment(file);  // refuses what is no such file
  OrderedJson env = OrderedJson::parse(read_file(file));
  env[key] = text;
  write_json(file, env);
}

}  // namespace ucas

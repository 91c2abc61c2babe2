#include "core/step_methods.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr const char* kFormat = "ucas-methods-1";
constexpr int64_t kMaxBytes = int64_t{1} << 30;
constexpr size_t kMostMethods = 64;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error("header_json", str(printable(path, 400), ": ", what, "; write it again with ucas advantages --save"));
}

const Json& member(const Json& object, const char* key, const std::string& path) {
  auto found = object.find(key);
  if (found == object.end()) refuse(path, str("\"", key, "\" is missing"));
  return *found;
}

std::string text(const Json& object, const char* key, const std::string& path) {
  const Json& value = member(object, key, path);
  if (!value.is_string()) refuse(path, str("\"", key, "\": expected text"));
  return value.get<std::string>();
}

float number(const Json& value, const std::string& path) {
  if (value.is_null()) return std::numeric_limits<float>::quiet_NaN();
  if (!value.is_number() || std::fabs(value.get<double>()) > std::numeric_limits<float>::max()) {
    refuse(path, "\"advantage\": expected 32-bit numbers or null");
  }
  return static_cast<float>(value.get<double>());
}

// One response's: a list, or one number for all its tokens.
void append_response(const Json& value, int64_t length, const std::string& path, std::vector<float>& to) {
  if (!value.is_array()) {
    to.resize(to.size() + static_cast<size_t>(length), number(value, path));
    return;
  }
  if (static_cast<int64_t>(value.size()) != length) {
    refuse(path, str("\"advantage\": ", value.size(), " values for ", length, " tokens"));
  }
  for (const Json& one : value) to.push_back(number(one, path));
}

MethodAdvantages read_method(const Json& json, const StepData& data, const std::string& path) {
  if (!json.is_object()) refuse(path, "\"methods\": expected objects");
  MethodAdvantages method{text(json, "method", path), text(json, "preset", path), text(json, "title", path), {}, {}};
  const Json& settings = member(json, "settings", path);
  if (!settings.is_object()) refuse(path, "\"settings\": expected an object");
  for (const auto& [key, value] : settings.items()) {
    if (!value.is_string()) refuse(path, "\"settings\": expected texts");
    method.settings.emplace_back(key, value.get<std::string>());
  }
  const Json& rows = member(json, "advantage", path);
  if (!rows.is_array() || rows.size() != data.batch.responses.size()) {
    refuse(path, str("\"advantage\": expected a list of ", data.batch.responses.size(), ", one entry a response"));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    append_response(rows[i], data.batch.responses[i].length, path, method.advantage);
  }
  return method;
}

}  // namespace

std::string step_methods_file(const std::string& step_file) {
  std::string_view stem = step_file;
  if (stem.ends_with(".jsonl")) stem.remove_suffix(6);
  return str(stem, ".methods.json");
}

std::string step_methods_json(const StepData& data, const std::string& source,
                              std::span<const MethodAdvantages> methods) {
  OrderedJson json = {{"format", kFormat}, {"step", data.step}, {"source", source}};
  json["methods"] = OrderedJson::array();
  for (const MethodAdvantages& method : methods) {
    UCAS_CHECK(method.advantage.size() == data.batch.token.size(), "an advantage a token");
    OrderedJson one = {{"method", method.name}, {"preset", method.preset}, {"title", method.title}};
    one["settings"] = OrderedJson::object();
    for (const auto& [key, value] : method.settings) one["settings"][key] = value;
    one["advantage"] = OrderedJson::array();
    for (const Response& o : data.batch.responses) {
      auto A = Batch::tokens(method.advantage, o);
      bool level = !A.empty() && std::ranges::all_of(A, [&](float a) { return a == A[0]; });
      one["advantage"].push_back(level ? OrderedJson(A[0]) : OrderedJson(std::vector<float>(A.begin(), A.end())));
    }
    json["methods"].push_back(std::move(one));
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::vector<MethodAdvantages> read_step_methods(const std::string& path, const StepData& data,
                                                const std::string& source) {
  Json json = read_json(path, kMaxBytes);
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat) {
    refuse(path, str("no \"format\": \"", kFormat, "\""));
  }
  if (text(json, "source", path) != source) refuse(path, "made from other step data than the file beside it");
  const Json& list = member(json, "methods", path);
  if (!list.is_array() || list.size() > kMostMethods) {
    refuse(path, str("\"methods\": expected a list of at most ", kMostMethods));
  }
  std::vector<MethodAdvantages> methods;
  for (const Json& one : list) methods.push_back(read_method(one, data, path));
  return methods;
}

}  // namespace ucas

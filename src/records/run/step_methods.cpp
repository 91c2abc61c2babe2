#include "records/run/step_methods.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr const char* kMethodsFormat = "ucas-methods-1";
constexpr int64_t kMostMethodBytes = int64_t{1} << 30;
constexpr size_t kMostMethods = 64;

float float_of(const JsonObject& method, const Json& value) {
  if (value.is_null()) return std::numeric_limits<float>::quiet_NaN();
  if (!value.is_number() || std::fabs(value.get<double>()) > std::numeric_limits<float>::max()) {
    method.refuse("\"advantage\": expected 32-bit numbers or null");
  }
  return static_cast<float>(value.get<double>());
}

// One response's: a list, or one number for all its tokens.
void append_advantages(const JsonObject& method, const Json& value, int64_t length, std::vector<float>& to) {
  if (!value.is_array()) {
    to.resize(to.size() + static_cast<size_t>(length), float_of(method, value));
    return;
  }
  if (static_cast<int64_t>(value.size()) != length) {
    method.refuse(str("\"advantage\": ", value.size(), " values for ", length, " tokens"));
  }
  for (const Json& one : value) to.push_back(float_of(method, one));
}

MethodAdvantages method_of(const JsonObject& json, const StepData& data) {
  MethodAdvantages method{json.text("method"), json.text("preset"), json.text("title"), {}, {}};
  const JsonObject settings = json.child("settings");
  for (const std::string& key : settings.keys()) method.settings.emplace_back(key, settings.text(key));
  const Json* rows = json.find("advantage");
  if (!rows || !rows->is_array() || rows->size() != data.batch.responses.size()) {
    json.refuse("advantage", str("a list of ", data.batch.responses.size(), ", one entry a response"));
  }
  for (size_t i = 0; i < rows->size(); ++i) {
    append_advantages(json, (*rows)[i], data.batch.responses[i].length, method.advantage);
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
  OrderedJson json = {{"format", kMethodsFormat}, {"step", data.step}, {"source", source}};
  json["methods"] = OrderedJson::array();
  for (const MethodAdvantages& method : methods) {
    UCAS_CHECK(method.advantage.size() == data.batch.token.size(), "expected one advantage per token");
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
  return json_text(json) + "\n";
}

std::vector<MethodAdvantages> read_step_methods(const std::string& path, const StepData& data,
                                                const std::string& source) {
  const JsonObject json =
      JsonObject::read(path, kMostMethodBytes, ErrorKind::header_json, "write it again with ucas advantages --save");
  json.format(kMethodsFormat, "written by ucas advantages");
  if (json.text("source") != source) json.refuse("made from other step data than the file beside it");
  const std::vector<JsonObject> list = json.children("methods");
  if (list.size() > kMostMethods) json.refuse(str("\"methods\": expected a list of at most ", kMostMethods));
  std::vector<MethodAdvantages> methods;
  for (const JsonObject& one : list) methods.push_back(method_of(one, data));
  return methods;
}

}  // namespace ucas

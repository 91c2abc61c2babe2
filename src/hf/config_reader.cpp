#include "hf/config_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 80);
}

}  // namespace

Json read_config_json(const std::string& path, int64_t limit) try {
  return read_json(path, limit);
} catch (const Error& error) {
  if (error.kind() != ErrorKind::header_json) throw;
  throw Error(ErrorKind::config, error.what());
}

ConfigReader::ConfigReader(const Json& object, std::string where)
    : object_(object, std::move(where), ErrorKind::config) {}

bool ConfigReader::has(const char* key) const { return object_.json().contains(key); }

const Json* ConfigReader::find(const char* key) const { return object_.find(key); }

void ConfigReader::refuse(ErrorKind kind, const char* key, const std::string& expected) const {
  const Json* value = find(key);
  throw Error(kind,
              str(where(), ": ", key, " = ", value == nullptr ? std::string("null") : shown(*value), ": ", expected));
}

void ConfigReader::refuse_null(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    if (has(key) && find(key) == nullptr) refuse(ErrorKind::config, key, "expected a value, or no such key");
}

std::optional<int64_t> ConfigReader::integer(const char* key, int64_t low, int64_t high) const {
  return find(key) == nullptr ? std::nullopt : std::optional(object_.whole(key, low, high));
}

int64_t ConfigReader::required(const char* key, int64_t low, int64_t high) const {
  return object_.whole(key, low, high);
}

std::optional<double> ConfigReader::number(const char* key, double low) const {
  if (find(key) == nullptr) return std::nullopt;
  const double value = object_.number(key);
  if (!(value >= low) || !std::isfinite(value)) object_.refuse(key, str("a finite number of at least ", low));
  return value;
}

std::optional<double> ConfigReader::positive(const char* key) const {
  if (find(key) == nullptr) return std::nullopt;
  const double value = object_.number(key);
  if (!(value > 0) || !std::isfinite(value)) object_.refuse(key, "a finite number above 0");
  return value;
}

double ConfigReader::required_positive(const char* key) const {
  const std::optional<double> value = positive(key);
  if (!value) object_.refuse(key, "a finite number above 0");
  return *value;
}

bool ConfigReader::boolean(const char* key, bool fallback) const { return object_.truth_or(key, fallback); }

std::vector<std::string> ConfigReader::names(const char* key) const { return object_.texts_or_text(key); }

std::optional<std::string> ConfigReader::text(const char* key) const {
  return find(key) == nullptr ? std::nullopt : std::optional(object_.text(key));
}

void ConfigReader::ids(const char* key, int64_t vocab, std::vector<int32_t>& out) const {
  const Json* value = find(key);
  if (value == nullptr) return;
  const std::vector<int32_t> list =
      value->is_array() ? object_.ids(key, vocab) : std::vector{static_cast<int32_t>(object_.whole(key, 0, vocab - 1))};
  for (int32_t id : list) {
    if (std::ranges::find(out, id) == out.end()) out.push_back(id);
  }
}

}  // namespace ucas

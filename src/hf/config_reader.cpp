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

ConfigReader::ConfigReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) throw Error(ErrorKind::config, str(where_, ": expected a JSON object, got ", shown(object)));
}

bool ConfigReader::has(const char* key) const { return object_.contains(key); }

const Json* ConfigReader::find(const char* key) const {
  auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void ConfigReader::refuse(ErrorKind kind, const char* key, const std::string& expected) const {
  const Json* value = find(key);
  throw Error(kind,
              str(where_, ": ", key, " = ", value == nullptr ? std::string("null") : shown(*value), ": ", expected));
}

void ConfigReader::missing(const char* key, const std::string& expected) const {
  throw Error(ErrorKind::config, str(where_, ": ", key, " is missing; expected ", expected));
}

void ConfigReader::refuse_null(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    if (has(key) && find(key) == nullptr) refuse(ErrorKind::config, key, "expected a value, or no such key");
}

std::optional<int64_t> ConfigReader::integer(const char* key, int64_t low, int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  bool fits = value->is_number_unsigned()  ? value->get<uint64_t>() <= static_cast<uint64_t>(high)
              : value->is_number_integer() ? value->get<int64_t>() >= low && value->get<int64_t>() <= high
                                           : false;
  if (!fits || value->get<int64_t>() < low)
    refuse(ErrorKind::config, key, str("expected an integer in ", low, " .. ", high));
  return value->get<int64_t>();
}

int64_t ConfigReader::required(const char* key, int64_t low, int64_t high) const {
  auto value = integer(key, low, high);
  if (!value) missing(key, str("an integer in ", low, " .. ", high));
  return *value;
}

std::optional<double> ConfigReader::number(const char* key, double low) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() >= low) || !std::isfinite(value->get<double>()))
    refuse(ErrorKind::config, key, str("expected a finite number of at least ", low));
  return value->get<double>();
}

std::optional<double> ConfigReader::positive(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() > 0) || !std::isfinite(value->get<double>()))
    refuse(ErrorKind::config, key, "expected a finite number above 0");
  return value->get<double>();
}

double ConfigReader::required_positive(const char* key) const {
  auto value = positive(key);
  if (!value) missing(key, "a finite number above 0");
  return *value;
}

bool ConfigReader::boolean(const char* key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(ErrorKind::config, key, "expected true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigReader::text(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(ErrorKind::config, key, "expected a string");
  return value->get<std::string>();
}

void ConfigReader::ids(const char* key, int64_t vocab, std::vector<int32_t>& out) const {
  const Json* value = find(key);
  if (value == nullptr) return;
  std::vector<Json> items = value->is_array() ? value->get<std::vector<Json>>() : std::vector<Json>{*value};
  for (const Json& item : items) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() >= static_cast<uint64_t>(vocab))
      refuse(ErrorKind::config, key, str("expected token ids below vocab_size = ", vocab));
    auto id = item.get<int32_t>();
    if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
  }
}

}  // namespace ucas

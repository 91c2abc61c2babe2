#include "hf/config_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/str.h"

namespace ucas {

Json read_config_json(const std::string& path, int64_t limit) try {
  return read_json(path, limit);
} catch (const Error& error) {
  if (error.kind() != ErrorKind::header_json) throw;
  throw Error(ErrorKind::config, error.what());
}

bool ConfigReader::says(const char* key) const { return json().contains(key); }

void ConfigReader::refuse(ErrorKind kind, const char* key, const std::string& expected) const {
  const Json* value = find(key);
  const std::string shown =
      value == nullptr ? "null" : printable(value->dump(-1, ' ', true, Json::error_handler_t::replace), 80);
  throw Error(kind, str(place(), ": ", key, " = ", shown, ": ", expected));
}

void ConfigReader::refuse_null(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    if (says(key) && !has(key)) refuse(ErrorKind::config, key, "expected a value, or no such key");
}

std::optional<int64_t> ConfigReader::integer(const char* key, int64_t low, int64_t high) const {
  return has(key) ? std::optional(whole(key, low, high)) : std::nullopt;
}

std::optional<double> ConfigReader::real(const char* key, double low) const {
  if (!has(key)) return std::nullopt;
  const double value = number(key);
  if (!(value >= low) || !std::isfinite(value)) JsonObject::refuse(key, str("a finite number of at least ", low));
  return value;
}

std::optional<double> ConfigReader::positive(const char* key) const {
  if (!has(key)) return std::nullopt;
  const double value = number(key);
  if (!(value > 0) || !std::isfinite(value)) JsonObject::refuse(key, "a finite number above 0");
  return value;
}

std::optional<std::string> ConfigReader::word(const char* key) const {
  return has(key) ? std::optional(text(key)) : std::nullopt;
}

void ConfigReader::add_ids(const char* key, int64_t vocab, std::vector<int32_t>& out) const {
  const Json* value = find(key);
  if (value == nullptr) return;
  const std::vector<int32_t> list =
      value->is_array() ? ids(key, vocab) : std::vector{static_cast<int32_t>(whole(key, 0, vocab - 1))};
  for (int32_t id : list) {
    if (std::ranges::find(out, id) == out.end()) out.push_back(id);
  }
}

}  // namespace ucas

// One JSON object of a checkpoint's settings: JsonObject's look-ups, which are Error(ErrorKind::config) here, and
// refusals of what ucas has not. null is no value.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/text/json.h"

namespace ucas {

// The JSON of a checkpoint's settings. What is no JSON is Error(ErrorKind::config), but bytes that are not UTF-8 (utf8)
// and a duplicate key (dup_key).
Json read_config_json(const std::string& path, int64_t limit);

class ConfigReader : public JsonObject {
 public:
  // Keeps a reference to `object`; `where` is the file, and the key that holds the object if it is an inner one.
  ConfigReader(const Json& object, std::string where) : JsonObject(object, std::move(where), ErrorKind::config) {}

  bool says(const char* key) const;  // also with null
  [[noreturn]] void refuse(ErrorKind kind, const char* key, const std::string& expected) const;
  // For keys whose absence means the usual value: with null they are refused.
  void refuse_null(std::initializer_list<const char*> keys) const;
  std::optional<int64_t> integer(const char* key, int64_t low, int64_t high) const;
  std::optional<double> real(const char* key, double low) const;  // finite, at least `low`
  std::optional<double> positive(const char* key) const;          // finite, above 0
  std::optional<std::string> word(const char* key) const;
  // Adds a token id or a list of them, each of 0 .. vocab - 1, to `out` where it is not in it.
  void add_ids(const char* key, int64_t vocab, std::vector<int32_t>& out) const;
};

}  // namespace ucas

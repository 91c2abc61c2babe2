#include "report/json_rows.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr int64_t kLargeFile = int64_t{1} << 30;

}  // namespace

[[noreturn]] void refuse(const std::string& where, const std::string& key, const Json& got, const char* expected) {
  throw Error("data_line",
              str(where, ": \"", printable(key), "\": ", got.type_name(), " ",
                  printable(got.dump(-1, ' ', false, Json::error_handler_t::replace), 40), ", expected ", expected));
}

const Json* member(const Json& object, const char* key) {
  auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

double number_at(const Json& object, const char* key, const std::string& where) {
  const Json* value = member(object, key);
  if (!value) return kUnknown;
  if (!value->is_number()) refuse(where, key, *value, "a number or null");
  return value->get<double>();
}

int64_t whole_at(const Json& object, const char* key, const std::string& where, int64_t otherwise) {
  const Json* value = member(object, key);
  if (!value) return otherwise;
  double number = value->is_number() ? value->get<double>() : kUnknown;
  if (!(std::fabs(number) < 9e15) || number != std::floor(number)) refuse(where, key, *value, "a whole number");
  return static_cast<int64_t>(number);
}

std::string text_at(const Json& object, const char* key, const std::string& where) {
  const Json* value = member(object, key);
  if (!value) return "";
  if (!value->is_string()) refuse(where, key, *value, "a text");
  return value->get<std::string>();
}

std::vector<std::string> texts_at(const Json& object, const char* key, const std::string& where) {
  const Json* value = member(object, key);
  std::vector<std::string> texts;
  if (!value) return texts;
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) refuse(where, key, *value, "a list of texts");
  for (const Json& item : *value) {
    if (!item.is_string()) refuse(where, key, item, "a text in the list");
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

Figure interval_of(const Json& object, const std::string& where) {
  return {number_at(object, "value", where), number_at(object, "low", where), number_at(object, "high", where)};
}

const Json& object_of(const Json& value, const std::string& where) {
  if (!value.is_object()) throw Error("data_line", str(where, ": a ", value.type_name(), ", expected an object"));
  return value;
}

// Calls each(row, "FILE:LINE") for every line. A last line without its newline that is not JSON was being written when
// the run stopped: it is left out and remarked.
void each_line(const std::string& path, std::vector<std::string>& remarks,
               const std::function<void(const Json&, const std::string&)>& each) {
  std::string bytes = read_file(path, kLargeFile);
  std::string_view rest = bytes;
  for (int64_t line = 1; !rest.empty(); ++line) {
    size_t end = rest.find('\n');
    std::string_view text = trim(rest.substr(0, end));
    std::string where = str(path, ":", line);
    if (!text.empty()) {
      std::optional<Json> row;
      try {
        row = parse_json(text, where);
      } catch (const Error&) {
        if (end != std::string_view::npos) throw;
        remarks.push_back(str(where, ": incomplete last line left out"));
      }
      if (row) each(object_of(*row, where), where);
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace ucas

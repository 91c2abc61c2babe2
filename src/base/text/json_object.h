// One JSON object, read value by value: every refusal names the place, the key, what is there and what was expected:
//   steps.jsonl:7: bins[2]: "count": string "six", expected a whole number from 0
// null counts as absent, except for a required number, where it stands for one that is not finite. Who reads through
// this needs no <nlohmann/json.hpp>, which costs seconds in every file that includes it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text/json.h"

namespace ucas {

struct Setting;  // base/text/fields.h

class JsonObject {
 public:
  static constexpr int64_t kMost = int64_t{1} << 53;  // whole numbers beyond it are not what the file says

  // Of `value`, which must outlive this. `where`: FILE or FILE:LINE; `kind`: of the errors; `advice`: what to do, at
  // the end of each of them.
  JsonObject(const Json& value, std::string where, ErrorKind kind = ErrorKind::data_line, const char* advice = "");
  // These own what they read.
  static JsonObject parse(std::string_view text, const std::string& where, ErrorKind kind = ErrorKind::data_line,
                          const char* advice = "");
  static JsonObject read(const std::string& path, int64_t limit, ErrorKind kind = ErrorKind::header_json,
                         const char* advice = "");

  [[noreturn]] void refuse(const std::string& what) const;                            // "PLACE: what"
  [[noreturn]] void refuse(std::string_view key, const std::string& expected) const;  // "PLACE: "key": .., expected .."
  std::string place() const;                                                          // "FILE:LINE: child.list[3]"
  const Json& json() const { return *object_; }
  const Json* find(std::string_view key) const;  // nullptr: absent or null
  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::vector<std::string> keys() const;                           // sorted, null or not
  void only(std::initializer_list<std::string_view> known) const;  // any other key is refused
  void format(const char* name, const char* hint) const;           // "format" must be `name`

  // What must be there.
  std::string text(std::string_view key) const;
  int64_t whole(std::string_view key, int64_t low = -kMost, int64_t high = kMost) const;
  double number(std::string_view key) const;
  bool truth(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<int32_t> ids(std::string_view key, int64_t vocabulary = int64_t{1} << 31) const;  // 0 .. vocabulary - 1
  JsonObject child(std::string_view key) const;
  std::vector<JsonObject> children(std::string_view key) const;
  std::vector<Setting> settings() const;  // all its keys, for apply()

  // What may be absent.
  std::string text_or(std::string_view key, const std::string& otherwise) const;
  int64_t whole_or(std::string_view key, int64_t otherwise, int64_t low = -kMost, int64_t high = kMost) const;
  double number_or(std::string_view key, double otherwise) const;
  bool truth_or(std::string_view key, bool otherwise) const;
  std::vector<std::string> texts_or_text(std::string_view key) const;  // a list, one text, or nothing
  std::vector<JsonObject> children_or_none(std::string_view key) const;

 private:
  JsonObject(std::shared_ptr<const Json> root, std::string where, ErrorKind kind, const char* advice);
  JsonObject inner(const Json& value, const std::string& path) const;
  const Json& required(std::string_view key, const char* expected) const;
  const Json& list(std::string_view key, const char* expected) const;
  [[noreturn]] void refuse_value(std::string_view key, const Json& got, const std::string& expected) const;
  int64_t whole_value(std::string_view key, const Json& value, int64_t low, int64_t high) const;

  std::shared_ptr<const Json> root_;  // where it was parsed here
  const Json* object_;
  std::string where_, path_;  // the file and line; the keys within them
  ErrorKind kind_;
  const char* advice_;
};

// Calls each(row) for every line of a file that grows by lines. A last line without its newline that is not JSON was
// being written when the program stopped: it is left out and remarked.
void each_json_line(const std::string& path, std::vector<std::string>& remarks,
                    const std::function<void(const JsonObject&)>& each);

}  // namespace ucas

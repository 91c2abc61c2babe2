// JSON from disk is hostile: strict parsing with a depth limit of 64, no duplicate keys, UTF-8 only, errors that name
// the place. Reading gives Json (sorted keys, O(log n) lookup); writing uses OrderedJson so files read in the order
// they were written. Include <nlohmann/json.hpp> only in .cpp files that need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ucas {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Throws Error(kind, "WHERE: ...") with kind in {utf8, dup_key, header_json}. `where` is a file or file:line.
Json parse_json(std::string_view text, const std::string& where);
// The same of a list of rows, which may hold more values (JsonMemory).
Json parse_json_rows(std::string_view text, const std::string& where);
// The same with the keys in the order of the text, of what is known to be JSON that parse_json takes.
OrderedJson parse_ordered_json(std::string_view text);
// JSON as text; bytes that are not UTF-8 become U+FFFD. indent -1: on one line. (Here and nowhere else: what turns a
// value into text, or text into a value, is the most expensive template of the build.)
std::string json_text(const OrderedJson& value, int indent = -1);
std::string json_text(const Json& value, int indent = -1);
std::string json_text(const std::string& text);
// A whole file, at most `limit` bytes.
Json read_json(const std::string& path, int64_t limit);

// What values of JSON take besides the bytes of their text, about: millions of empty lists are some fifty times their
// file. More than `most` bytes and half of the text is Error(ErrorKind::limit). For what builds values as they come.
class JsonMemory {
 public:
  static constexpr size_t kItem = 40, kKey = 96, kOpen = 64, kText = 32;  // bytes, as lists grow and nodes are kept
  static constexpr size_t kDocument = size_t{128} << 20, kRows = 2 * kDocument;  // a list of all rows of a file
  // `where` outlives this.
  JsonMemory(size_t text_bytes, const std::string& where, size_t most = kDocument);
  void take(size_t bytes) {
    if (bytes > left_) refuse();
    left_ -= bytes;
  }

 private:
  [[noreturn]] void refuse() const;
  size_t most_, left_;
  const std::string& where_;
};

// One JSON object, read value by value: every refusal names the place, the key, what is there and what was expected:
//   steps.jsonl:7: bins[2]: "count": string "six", expected a whole number from 0
// null counts as absent, except for a required number, where it is one that is not finite. Who reads through
// this needs no <nlohmann/json.hpp>, which costs seconds in every file that includes it.

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

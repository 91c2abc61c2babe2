// JSON from disk is hostile: strict parsing with a depth limit of 64, no duplicate keys, UTF-8 only, errors that name
// the place. Reading gives Json (sorted keys, O(log n) lookup); writing uses OrderedJson so files read in the order
// they were written. Include <nlohmann/json.hpp> only in .cpp files that need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ucas {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Error(ErrorKind::header_json) for bytes that no JSON text holds and a parser may pass over: a byte order mark, a NUL
// (which nlohmann takes for the end, whatever follows it). For readers with events of their own; parse_json calls it.
void check_json_bytes(std::string_view text, const std::string& where);
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

// What values of JSON take beside the bytes of their text, about: millions of empty lists are some fifty times their
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

}  // namespace ucas

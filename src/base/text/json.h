// JSON from disk is hostile: strict parsing with a depth limit of 64, no duplicate keys, UTF-8 only, errors that name
// the place. Reading gives Json (sorted keys, O(log n) lookup); writing uses OrderedJson so files read in the order
// they were written. Include <nlohmann/json.hpp> only in .cpp files that need it.
#pragma once

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
// The same of a list of rows, which may hold more values (base/text/json_memory.h).
Json parse_json_rows(std::string_view text, const std::string& where);
// JSON as text; bytes that are not UTF-8 become U+FFFD. indent -1: on one line. (Here and nowhere else: what turns a
// value into text is the most expensive template of the build.)
std::string json_text(const OrderedJson& value, int indent = -1);
std::string json_text(const Json& value, int indent = -1);
std::string json_text(const std::string& text);
// A whole file, at most `limit` bytes.
Json read_json(const std::string& path, int64_t limit);

}  // namespace ucas

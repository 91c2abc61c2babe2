#include "data/jsonl.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"
#include "base/log.h"
#include "base/str.h"

namespace ucas {

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error("data_line", str(where, ": ", what));
}

Json parse_row(std::string_view line, const std::string& where) {
  if (static_cast<int64_t>(line.size()) > kLineLimit) {
    refuse(where, str("a line of ", human_bytes(static_cast<double>(line.size())), ", the limit is ",
                      human_bytes(static_cast<double>(kLineLimit))));
  }
  if (line.starts_with("\xef\xbb\xbf")) refuse(where, "starts with a byte-order mark; save the file as plain UTF-8");
  if (!valid_utf8(line)) refuse(where, "invalid UTF-8");
  try {
    Json row = parse_json(line, where);
    if (!row.is_object()) refuse(where, str("expected a JSON object, got ", row.type_name()));
    return row;
  } catch (const Error& error) {
    throw Error("data_line", error.what());
  }
}

void check_skipped(const std::string& path, const LineCounts& counts, const std::string& first) {
  if (counts.skipped == 0) return;
  int64_t all = counts.rows + counts.skipped;
  if (counts.skipped * 100 > all) {
    throw Error("data_line", str(first, " (", counts.skipped, " of ", all, " rows of ", path,
                                 " are bad; bad_rows = skip forgives at most 1 %)"));
  }
  warn(str(path, ": left out ", counts.skipped, " of ", all, " rows; the first: ", first));
}

}  // namespace

LineCounts read_json_lines(const std::string& path, BadRows bad_rows, const std::function<void(const JsonRow&)>& take) {
  std::string bytes = read_file(path, kFileLimit);
  std::string shown = printable(path, 400), first_error;
  LineCounts counts;
  int64_t number = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view line = std::string_view(bytes).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (trim(line).empty()) continue;
    std::string where = str(shown, ":", number);
    try {
      Json value = parse_row(line, where);
      take(JsonRow{value, where, number});
      ++counts.rows;
    } catch (const Error& error) {
      if (bad_rows == BadRows::stop || error.kind() != "data_line") throw;
      if (counts.skipped++ == 0) first_error = error.what();
    }
  }
  if (counts.rows + counts.skipped == 0) throw Error("empty", str(shown, ": the file has no rows"));
  check_skipped(shown, counts, first_error);
  return counts;
}

std::string text_field(const JsonRow& row, const std::string& key) {
  std::string text = JsonObject(row.value, row.where).text(key);
  if (text.find('\0') != std::string::npos) refuse(row.where, str("\"", key, "\": contains a NUL character"));
  return text;
}

std::vector<int32_t> ids_field(const JsonRow& row, const std::string& key, int64_t vocabulary) {
  return JsonObject(row.value, row.where).ids(key, vocabulary);
}

std::string first_key(const JsonRow& row, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    auto at = row.value.find(key);
    if (at != row.value.end() && !at->is_null()) return key;
  }
  return "";
}

std::vector<std::string> answer_field(const JsonRow& row, const Json& value, const std::string& key, bool allow_empty) {
  std::vector<std::string> texts;
  auto add = [&](const Json& item) {
    if (item.is_string()) {
      texts.push_back(item.get<std::string>());
    } else if (item.is_number()) {
      texts.push_back(item.dump());
    } else {
      refuse(row.where, str("\"", key, "\": expected text, a number or a list of those, got ", item.type_name()));
    }
    if (texts.back().find('\0') != std::string::npos) refuse(row.where, str("\"", key, "\": contains a NUL character"));
    if (!allow_empty && trim(texts.back()).empty()) refuse(row.where, str("\"", key, "\": the answer is empty"));
  };
  if (value.is_array()) {
    if (value.empty() && !allow_empty) refuse(row.where, str("\"", key, "\": the list of answers is empty"));
    for (const Json& item : value) add(item);
  } else {
    add(value);
  }
  return texts;
}

}  // namespace ucas

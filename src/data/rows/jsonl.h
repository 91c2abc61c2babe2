// Rows of files, one strict reader for all of them: problems, demonstrations, answers to verify. JSON Lines; a JSON
// array of objects; *.csv and *.tsv whose first record names the columns, all of them texts; each of them packed by
// gzip (*.gz); Parquet (*.parquet). A byte-order mark at the beginning is passed over.
// Every refusal is Error(ErrorKind::data_line, "FILE:LINE: ...").
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text/json.h"

namespace ucas {

enum class BadRows { stop, skip };  // skip: leave the row out and count it; more than 1 % of a file stops the run
constexpr std::array<const char*, 2> names(BadRows) { return {"stop", "skip"}; }
inline constexpr const char* kBadRowsHelp =
    "treatment of bad rows: stop the run, or skip and count (at most 1 % of rows)";

struct JsonRow {
  const Json& value;         // always an object
  const std::string& where;  // "FILE:LINE"; of a JSON array "FILE:ITEM", of Parquet "FILE:ROW", from 1
  int64_t line = 0;          // from 1
};

struct LineCounts {
  int64_t rows = 0;     // taken
  int64_t skipped = 0;  // left out under BadRows::skip
};

constexpr int64_t kLineLimit = int64_t{16} << 20;  // bytes
constexpr int64_t kFileLimit = int64_t{4} << 30;   // bytes, also when unpacked

// Calls `take` for each row of the file; blank lines are ignored. `take` may throw Error for a row it does not like.
// An empty file is Error(ErrorKind::empty). Of Parquet, read by Python's pyarrow: texts, numbers, booleans, lists and
// structs become what they are in JSON, a map with texts as keys an object, not-a-number null; a column of any other
// type is left out with a warning. Its errors: parquet (broken, or texts that are not UTF-8); schema (no column that is
// read, or one twice); limit (a footer, page or row too large, or rows that come to a hundred times the file, since a
// text that is in every row is kept once); unsupported (no Python that has pyarrow).
LineCounts read_json_lines(const std::string& path, BadRows bad_rows, const std::function<void(const JsonRow&)>& take);

// Whether a file that begins with these bytes, kListHead at most are looked at, is one JSON array of rows.
constexpr int64_t kListHead = 4096;
bool is_row_list(std::string_view bytes);

// The file's name without folder, ".gz" and the extension: "train" of train.jsonl.gz. Of a data set in
// the hub's cache the set's name: "gsm8k".
std::string data_stem(const std::string& path);

// The text under `key`, which must be there; NUL bytes are refused.
std::string text_field(const JsonRow& row, const std::string& key);
// The list of token ids under `key`, each from 0 to `vocabulary` - 1.
std::vector<int32_t> ids_field(const JsonRow& row, const std::string& key, int64_t vocabulary);
// The first of `keys` that the row has (not null), or "" when it has none.
std::string first_key(const JsonRow& row, const std::vector<std::string>& keys);
// A text, a number, or a list of those, as texts. `allow_empty`: no alternatives, or empty ones, are fine.
std::vector<std::string> answer_field(const JsonRow& row, const Json& value, const std::string& key, bool allow_empty);

// Packed bytes unpacked, never more of them than a limit.

enum class Packing { zlib, gzip };  // of gzip any number of members after one another, as pigz and bgzip write them

// Error(`kind`, "WHERE: ...") for what is broken, ends early or unpacks to more than `limit` bytes (of gzip: "limit").
std::string inflate_all(std::string_view bytes, Packing form, int64_t limit, const std::string& where, ErrorKind kind);
// Does it begin as gzip does? No JSON or CSV begins so.
bool is_gzip(std::string_view bytes);

// Comma-separated values as RFC 4180 has them: fields in quotation marks may hold commas, line ends and "" for ". The
// first record names the columns. Every refusal is Error(ErrorKind::data_line, "FILE:LINE: ...").

class CsvReader {
 public:
  // `text` must outlive this. `separator`: ',' or a tab; `shown`: the file in errors.
  CsvReader(std::string_view text, char separator, std::string shown);

  const std::vector<std::string>& columns() const { return columns_; }
  // The next record's line and fields, one for each column; nothing at the end. Empty lines are passed over. A record
  // that is refused is passed over, too, by the next call.
  struct Record {
    int64_t line = 0;  // of its beginning, from 1
    std::vector<std::string> fields;
  };
  std::optional<Record> next();

 private:
  std::optional<Record> record();
  std::string where(int64_t line) const;

  std::string_view text_;
  const char separator_;
  const std::string shown_;
  size_t at_ = 0;
  int64_t line_ = 1;
  std::vector<std::string> columns_;
};

}  // namespace ucas

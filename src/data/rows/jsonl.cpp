#include "data/rows/jsonl.h"

#include <nlohmann/json.hpp>

#include <zlib.h>
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/process/line_child.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"

namespace ucas {

namespace {

// Of gzip and Parquet: the bytes of all rows together, and their number, since each takes half a kilobyte as a problem.
constexpr int64_t kLeastUnpacked = int64_t{64} << 20, kMostRatio = 100;
constexpr int64_t kLeastRows = 200'000, kBytesPerRow = 5;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::data_line, str(where, ": ", what));
}

Json parse_row(std::string_view line, const std::string& where) {
  if (static_cast<int64_t>(line.size()) > kLineLimit) {
    refuse(where, str("a line of ", human_bytes(static_cast<double>(line.size())), ", the limit is ",
                      human_bytes(static_cast<double>(kLineLimit))));
  }
  if (!valid_utf8(line)) refuse(where, "invalid UTF-8");
  try {
    Json row = parse_json(line, where);
    if (!row.is_object()) refuse(where, str("expected a JSON object, got ", row.type_name()));
    return row;
  } catch (const Error& error) {
    throw Error(ErrorKind::data_line, error.what());
  }
}

void check_skipped(const std::string& path, const LineCounts& counts, const std::string& first) {
  if (counts.skipped == 0) return;
  int64_t all = counts.rows + counts.skipped;
  if (counts.skipped * 100 > all) {
    throw Error(ErrorKind::data_line, str(first, " (", counts.skipped, " of ", all, " rows of ", path,
                                          " are bad; bad_rows = skip tolerates at most 1 % bad rows)"));
  }
  count_warning(Warning::bad_row, counts.skipped);
  warn(str(path, ": left out ", counts.skipped, " of ", all, " rows; the first: ", first));
}

constexpr size_t kMostColumns = 1000;
constexpr size_t kLongestRecord = size_t{16} << 20;  // bytes, as a line of JSON

// The file's reader gives each row's place and value: take(line, [where] -> Json).
using TakeRow = std::function<void(int64_t line, const std::function<Json(const std::string& where)>& value)>;

void each_line(std::string_view bytes, const TakeRow& take) {
  int64_t number = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (!trim(line).empty()) take(number, [&](const std::string& where) { return parse_row(line, where); });
  }
}

// Of a JSON array; rows are numbered from 1.
void each_item(std::string_view bytes, const std::string& shown, const TakeRow& take) {
  const std::string place = str(shown, ":1");
  if (!valid_utf8(bytes)) refuse(place, "invalid UTF-8");
  Json list;
  try {
    list = parse_json_rows(bytes, place);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::limit) throw;
    throw Error(ErrorKind::data_line, error.what());
  }
  if (!list.is_array())
    refuse(place, str("expected a JSON array of rows, or one object a line, got one ", list.type_name()));
  int64_t number = 0;
  for (Json& item : list) {
    take(++number, [&](const std::string& where) {
      if (!item.is_object()) refuse(where, str("expected a JSON object, got ", item.type_name()));
      return std::move(item);
    });
  }
}

void each_record(std::string_view bytes, char separator, const std::string& shown, const TakeRow& take) {
  CsvReader reader(bytes, separator, shown);
  for (bool more = true; more;) {
    std::optional<CsvReader::Record> record;
    std::string refusal;
    try {
      record = reader.next();
      more = record.has_value();
    } catch (const Error& error) {
      refusal = error.what();
    }
    if (!more) return;
    take(record ? record->line : 0, [&](const std::string& where) {
      if (!record) throw Error(ErrorKind::data_line, refusal);
      Json row = Json::object();
      for (size_t i = 0; i < record->fields.size(); ++i) {
        if (!valid_utf8(record->fields[i])) refuse(where, "invalid UTF-8");
        if (!reader.columns()[i].empty()) row[reader.columns()[i]] = record->fields[i];
      }
      return row;
    });
    if (!record && refusal.find("never closes") != std::string::npos) return;
  }
}

// Of Parquet, by python/ucas/parquet_rows.py: some rows for each line that it is sent, none at the end.
void each_parquet_row(const std::string& path, const std::string& shown, int64_t most, const TakeRow& take) {
  constexpr const char* kNoPyarrow =
      "; `pip install 'ucas[parquet]'` or `pip install pyarrow` brings it, UCAS_PYTHON names a Python that has it";
  LineChild reader(python_words("parquet_rows", {path, torch_packages()}),
                   {.name = shown,
                    .kind = ErrorKind::parquet,
                    .exit_code = kBadInput,
                    .consequence = "; Parquet is read by pyarrow in a Python of its own",
                    .longest = size_t{64} << 20});
  int64_t row = 0, bytes = 0, before = -1;
  while (row > before) {
    const std::string reply = reader.ask("\n", 1);
    if (reply.starts_with("{")) {
      const JsonObject said = JsonObject::parse(reply, shown);
      if (said.has("warning")) {
        warn(str(shown, ": ", printable(said.text("warning"), 400)));
        continue;
      }
      const ErrorKind kind = error_kind_of(said.text("kind"));
      const bool none = kind == ErrorKind::unsupported;
      throw Error(kind, str(shown, none ? ": reading Parquet needs pyarrow: " : ": ",
                            printable(said.text("error"), 400), none ? kNoPyarrow : ""));
    }
    if ((bytes += std::ssize(reply)) > most) {
      throw Error(ErrorKind::limit, str(shown, ": rows that come to more than a hundred times the file; write them as ",
                                        "plain JSON Lines if they are meant"));
    }
    before = row;
    each_item(reply, shown, [&](int64_t, const auto& value) { take(++row, value); });
  }
}

// What is neither text nor a form that is read, by its first bytes.
void refuse_binary(std::string_view bytes, const std::string& shown) {
  const struct {
    std::string_view magic;
    const char *name, *instead;
  } kForms[] = {
      {"\x28\xb5\x2f\xfd", "zstandard-compressed", "unpack it with zstd -d, or pack it with gzip"},
      {"BZh", "bzip2-compressed", "unpack it with bunzip2, or pack it with gzip"},
      {"\xfd"
       "7zXZ",
       "xz-compressed", "unpack it with unxz, or pack it with gzip"},
      {"PK\x03\x04", "a zip archive", "unpack it"},
      {"ARROW1", "an Arrow file", "write it as Parquet (datasets: to_parquet)"},
      {"\xff\xff\xff\xff", "an Arrow stream, as datasets' cache has it", "write it as Parquet (datasets: to_parquet)"},
      {"PAR1", "Parquet under another name", "end its name in .parquet"},
      {"\xff\xfe", "UTF-16", "write it as UTF-8"},
      {"\xfe\xff", "UTF-16", "write it as UTF-8"}};
  for (const auto& form : kForms) {
    if (bytes.starts_with(form.magic))
      throw Error(ErrorKind::data_line, str(shown, " is ", form.name, ", which is not read: ", form.instead));
  }
}

std::string unpacked_name(const std::string& path) {
  return path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
}

}  // namespace

bool is_row_list(std::string_view bytes) { return trim(bytes.substr(0, kListHead)).starts_with("["); }

std::string data_stem(const std::string& path) {
  if (const auto hub = hub_origin(path)) return hub->name.substr(hub->name.find('/') + 1);
  return std::filesystem::path(unpacked_name(path)).stem().string();
}

LineCounts read_json_lines(const std::string& path, BadRows bad_rows, const std::function<void(const JsonRow&)>& take) {
  const std::string shown = printable(path, 400), kind = unpacked_name(path);
  const bool parquet = path.ends_with(".parquet");
  refuse_lfs_pointer(path);
  std::string file = parquet ? "" : read_file(path, kFileLimit);
  const bool packed = parquet || is_gzip(file);
  const int64_t size = parquet ? file_size(path) : std::ssize(file);
  const int64_t most_rows = packed ? kLeastRows + size / kBytesPerRow : INT64_MAX;
  const int64_t unpacked = std::min(kFileLimit, kLeastUnpacked + kMostRatio * size);
  if (packed && !parquet) {  // rows pack to a tenth, a bomb to a thousandth
    file = inflate_all(file, Packing::gzip, unpacked, shown, ErrorKind::truncated);
  }
  std::string_view bytes = file;
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  refuse_binary(bytes, shown);
  std::string first_error;
  LineCounts counts;
  const TakeRow take_row = [&](int64_t line, const std::function<Json(const std::string&)>& value) {
    const std::string where = str(shown, ":", line);
    if (counts.rows + counts.skipped == most_rows) {
      throw Error(ErrorKind::limit,
                  str(shown, ": more than ", grouped(most_rows), " rows in a packed file of ",
                      human_bytes(static_cast<double>(size)), "; write them as plain JSON Lines if they are meant"));
    }
    try {
      const Json row = value(where);
      take(JsonRow{row, where, line});
      ++counts.rows;
    } catch (const Error& error) {
      if (bad_rows == BadRows::stop || error.kind() != ErrorKind::data_line) throw;
      if (counts.skipped++ == 0) first_error = error.what();
    }
  };
  if (parquet) {
    each_parquet_row(path, shown, unpacked, take_row);
  } else if (kind.ends_with(".csv") || kind.ends_with(".tsv")) {
    each_record(bytes, kind.ends_with(".csv") ? ',' : '\t', shown, take_row);
  } else if (is_row_list(bytes)) {
    each_item(bytes, shown, take_row);
  } else {
    each_line(bytes, take_row);
  }
  if (counts.rows + counts.skipped == 0) throw Error(ErrorKind::empty, str(shown, ": the file has no rows"));
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
      std::string digits = json_text(item);
      if (digits.ends_with(".0")) digits.resize(digits.size() - 2);  // 72.0 of a column of numbers is no rounded value
      texts.push_back(std::move(digits));
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

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string inflate_all(std::string_view bytes, Packing form, int64_t limit, const std::string& where, ErrorKind kind) {
  const bool gzip = form == Packing::gzip;
  const auto refuse = [&] [[noreturn]] (const std::string& what) { throw Error(kind, str(where, ": ", what)); };
  constexpr int kWindow = 15, kGzip = 16;  // bits; zlib's flag for gzip
  z_stream stream{};
  if (::inflateInit2(&stream, gzip ? kWindow + kGzip : kWindow) != Z_OK) refuse("zlib has no memory");
  struct End {
    z_stream& stream;
    ~End() { ::inflateEnd(&stream); }
  } end{stream};
  std::string out;
  std::array<char, 1 << 16> buffer;
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.avail_in == 0) {
      constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(std::min(bytes.size(), kMost));
      bytes.remove_prefix(stream.avail_in);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    result = ::inflate(&stream, Z_NO_FLUSH);
    const size_t made = buffer.size() - stream.avail_out;
    if (std::ssize(out) + static_cast<int64_t>(made) > limit) {  // before the text doubles its size
      throw Error(gzip ? ErrorKind::limit : kind,
                  str(where, ": more than ", human_bytes(static_cast<double>(limit)), " when unpacked"));
    }
    out.append(buffer.data(), made);
    const bool more = stream.avail_in > 0 || !bytes.empty();
    if (gzip && more && result == Z_STREAM_END) result = ::inflateReset(&stream);
  }
  if (result != Z_STREAM_END || stream.avail_in != 0 || !bytes.empty()) {
    refuse(result == Z_BUF_ERROR ? str(gzip ? "gzip" : "zlib", " data that ends early")
                                 : str("not whole ", gzip ? "gzip" : "zlib", " data"));
  }
  return out;
}

CsvReader::CsvReader(std::string_view text, char separator, std::string shown)
    : text_(text), separator_(separator), shown_(std::move(shown)) {
  if (std::optional<Record> names = record()) columns_ = std::move(names->fields);
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i] = std::string(trim(columns_[i]));
    if (columns_[i].empty()) continue;  // the index of pandas: no question and no answer
    if (std::find(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(i), columns_[i]) !=
        columns_.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error(ErrorKind::data_line, str(where(1), ": the header names \"", printable(columns_[i]), "\" twice"));
    }
  }
}

std::string CsvReader::where(int64_t line) const { return str(shown_, ":", line); }

std::optional<CsvReader::Record> CsvReader::next() {
  std::optional<Record> found = record();
  if (found && found->fields.size() != columns_.size()) {
    throw Error(ErrorKind::data_line,
                str(where(found->line), ": ", found->fields.size(), " fields, expected ", columns_.size(),
                    " as in the header; quote a field with a comma or a line end as \"..\""));
  }
  return found;
}

std::optional<CsvReader::Record> CsvReader::record() {
  const auto line_end = [&] { return at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '\r'; };
  const auto pass_line_end = [&] {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  };
  while (at_ < text_.size() && line_end()) pass_line_end();
  if (at_ >= text_.size()) return std::nullopt;
  Record found{line_, {}};
  const size_t begin = at_;
  while (true) {
    std::string field;
    if (at_ < text_.size() && text_[at_] == '"') {
      const int64_t opened = line_;
      for (++at_;; ++at_) {
        if (at_ >= text_.size()) {
          throw Error(ErrorKind::data_line, str(where(opened), ": a field opens with \" and never closes"));
        }
        if (text_[at_] == '"') {
          if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
          ++at_;
        }
        line_ += text_[at_] == '\n' ? 1 : 0;
        field += text_[at_];
      }
      ++at_;
      if (!line_end() && text_[at_] != separator_) {
        const int64_t at_line = line_;
        while (!line_end()) ++at_;
        throw Error(ErrorKind::data_line,
                    str(where(at_line), ": text after the closing \" of a field; \" inside is written \"\""));
      }
    } else {
      while (!line_end() && text_[at_] != separator_) field += text_[at_++];
    }
    found.fields.push_back(std::move(field));
    if (found.fields.size() > kMostColumns || at_ - begin > kLongestRecord) {
      while (!line_end()) ++at_;
      throw Error(ErrorKind::data_line, str(where(found.line), ": a record of more than ", kMostColumns, " fields or ",
                                            human_bytes(static_cast<double>(kLongestRecord))));
    }
    if (line_end()) break;
    ++at_;  // the separator
  }
  if (at_ < text_.size()) pass_line_end();
  return found;
}

}  // namespace ucas

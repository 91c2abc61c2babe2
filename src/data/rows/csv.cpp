#include "data/rows/csv.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kMostColumns = 1000;
constexpr size_t kLongestRecord = size_t{16} << 20;  // bytes, as a line of JSON

}  // namespace

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
                    " as in the header; a field with a comma or a line end in it stands in \"..\""));
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

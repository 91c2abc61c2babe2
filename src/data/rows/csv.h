// Comma-separated values as RFC 4180 has them: fields in quotation marks may hold commas, line ends and "" for ". The
// first record names the columns. Every refusal is Error(ErrorKind::data_line, "FILE:LINE: ...").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

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

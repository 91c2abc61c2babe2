// Rows of data that hold bytes which the tokenizer has no token for (Tokenizer::unencodable_bytes): counted and said
// once for a file, with the first of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace ucas {

class UnencodableRows {
 public:
  explicit UnencodableRows(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  // `name` of the row, for people; a row may have several texts, one call after the other.
  void look_at(std::string_view text, const std::string& name);
  int64_t count() const { return count_; }
  // "3 of 600 prompts hold bytes ..", and a lapse each; nothing where there are none.
  void say(const std::string& what, int64_t of) const;

 private:
  const Tokenizer* tokenizer_;
  int64_t count_ = 0;
  std::string first_, last_;
};

}  // namespace ucas

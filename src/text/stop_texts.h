// Texts that end a response wherever its tokens complete one: what is sampled, and trained on, goes up to the token
// that does, whole. Fed by rollout.stop and by the stops of evaluations; asked by the engine after each token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace ucas {

class StopTexts {
 public:
  // Borrows the tokenizer. Error(ErrorKind::config) for an empty text.
  StopTexts(const Tokenizer& tokenizer, std::vector<std::string> texts);

  bool empty() const { return texts_.empty(); }
  // Whether the last of `ids` completes one of the texts; asked after each token of a response.
  bool end(std::span<const int32_t> ids) const;

 private:
  const Tokenizer* tokenizer_;
  std::vector<std::string> texts_;
  size_t tail_ = 0;  // tokens that can hold the longest of them
};

// Rows of data that hold bytes which the tokenizer has no token for (Tokenizer::unencodable_bytes): counted and said
// once for a file, with the first of them.
class UnencodableRows {
 public:
  explicit UnencodableRows(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  // `name` of the row, for people; a row may have several texts, one call after the other.
  void look_at(std::string_view text, const std::string& name);
  int64_t count() const { return count_; }
  // "3 of 600 prompts hold bytes ..", and a warning each; nothing where there are none.
  void say(const std::string& what, int64_t of) const;

 private:
  const Tokenizer* tokenizer_;
  int64_t count_ = 0;
  std::string first_, last_;
};

}  // namespace ucas

// Texts that end a response wherever its tokens complete one: what is sampled, and trained on, goes up to the token
// that does, whole. Fed by rollout.stop and by the stops of evaluations; asked by the engine after each token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
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

}  // namespace ucas

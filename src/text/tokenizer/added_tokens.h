// Tokens that are cut out of the text before anything else looks at it: "<|im_end|>", "<|fim_pad|>" ...
// Tokens with `normalized` are looked for after the normaliser has run (their own text is normalised too), the others
// in the raw text; among those that start at one place the longest wins. The rules are Hugging Face's AddedVocabulary.
// Threads: const functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/prefix_tree.h"

namespace ucas {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;  // skipped by decode(skip_special), plain text under Special::as_text
  bool normalized = false;
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space after it along
  bool single_word = false;  // only where no letter, digit or underscore touches it
};

class AddedTokenFinder {
 public:
  // A stretch of the text: plain (id -1) or one token.
  struct Piece {
    size_t begin, end;
    int32_t id;
  };

  void add(const AddedToken& token, std::string_view searched_text);
  bool empty() const { return tree_.empty(); }
  // Cuts all of `text`; with `skip_special` special tokens are plain text. With the `origin` of each byte (MarkedText)
  // a special token is one only where the template wrote all of it.
  std::vector<Piece> cut(std::string_view text, bool skip_special, std::string_view origin = {}) const;

 private:
  PrefixTree tree_;
  std::vector<AddedToken> tokens_;
};

}  // namespace ucas

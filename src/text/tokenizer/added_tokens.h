// Tokens that are cut out of the text before anything else looks at it: "<|im_end|>", "<|fim_pad|>" ...
// Tokens with `normalized` are looked for after the normaliser has run (their own text is normalised too), the others
// in the raw text; among those that start at one place the longest wins. The rules are Hugging Face's AddedVocabulary.
// Threads: const functions may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ucas {

// A set of byte strings and the longest of them that starts at a place in a text: added tokens and word-level words.
// Threads: const functions may be called from any thread.
class PrefixTree {
 public:
  struct Match {
    size_t length = 0;  // 0: nothing matches
    int32_t value = -1;
  };

  void add(std::string_view word, int32_t value);  // not empty; a word added again takes the new value
  Match longest(std::string_view text, size_t at) const;
  bool empty() const { return ends_.size() == 1; }
  // First place at or after `at` where a word may start; text.size() if there is none.
  size_t next_candidate(std::string_view text, size_t at) const;

 private:
  static uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<unsigned char>(byte); }

  std::unordered_map<uint64_t, uint32_t> edges_;  // (node, byte) -> node
  std::vector<int32_t> ends_{-1};                 // value of the word that ends at this node, or -1
  std::array<bool, 256> starts_{};
};

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
  // Adds the parts of `text` that are the text of a special token; they may overlap.
  void specials_in(std::string_view text, std::vector<std::string_view>& parts) const;

 private:
  PrefixTree tree_;
  std::vector<AddedToken> tokens_;
};

// The word-level tokenizer of the embedded task: a fixed list of words, the longest one that fits is taken.
// Its tokenizer.json is a real Hugging Face file: model WordLevel, pre-tokenizer Split by a regular expression that
// lists the words, longest first (so that the first alternative is the longest match), decoder Fuse.
// Threads: const functions may be called from any thread.

// Writes tokenizer.json and tokenizer_config.json. words[i] gets id i, then come pad and eos.
void write_word_level_tokenizer(const std::string& directory, std::span<const std::string> words,
                                const std::string& eos, const std::string& pad);

// The expression that splits text into these words: the words, escaped, longest first, joined by "|".
std::string word_pattern(std::vector<std::string> words);

class WordLevel {
 public:
  WordLevel(const std::vector<std::pair<std::string, int32_t>>& words, std::optional<int32_t> unknown);
  // Text between words becomes one unknown token; without such a token it is an Error(ErrorKind::tokenizer).
  void encode(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  PrefixTree words_;
  std::optional<int32_t> unknown_;
};

}  // namespace ucas

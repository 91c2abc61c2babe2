// The word-level tokenizer of the embedded task: a fixed list of words, the longest one that fits is taken.
// Its tokenizer.json is a real Hugging Face file: model WordLevel, pre-tokenizer Split by a regular expression that
// lists the words, longest first (so that the first alternative is the longest match), decoder Fuse.
// Threads: const functions may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/added_tokens.h"

namespace ucas {

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

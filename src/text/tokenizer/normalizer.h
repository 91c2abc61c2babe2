// The normalizer of a tokenizer.json: what happens to a text before it is cut into pieces. Steps in order: NFC (of
// Unicode 9, text/unicode/unicode.h), Prepend (before a text that is not empty), Replace (each match of a literal or an
// expression). Threads: const functions from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/split/splitter.h"

namespace ucas {

struct NfcStep {};
struct PrependStep {
  std::string content;
};
struct ReplaceStep {
  std::variant<std::string, Regex> pattern;
  std::string content;
};
using NormalizerStep = std::variant<NfcStep, PrependStep, ReplaceStep>;

class Normalizer {
 public:
  void add(NormalizerStep step) { steps_.push_back(std::move(step)); }
  bool changes(std::string_view text) const;  // false: apply(text) == text for certain
  std::string apply(std::string_view text) const;

 private:
  std::vector<NormalizerStep> steps_;
};

// Every `from` in `text` becomes `to`. Error(ErrorKind::limit) where that makes more than `most` bytes.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        size_t most = size_t{1} << 20);

// The decoder of a tokenizer.json: from ids to text. Byte-level files join the bytes of their tokens; SentencePiece's
// kind replaces "\u2581" by a space in each token, joins "<0xE2>" ... to characters and takes a space away in front.
// Threads: const functions from any thread.

struct DecoderRules {
  bool byte_level = false;                                        // tokens are spelled in GPT-2's byte alphabet
  bool spaced = false;                                            // no decoder: tokens as spelled, a space between
  std::vector<std::pair<std::string, std::string>> replacements;  // in each token, in this order
  bool byte_fallback = false;                                     // "<0x0A>" is a byte
  std::string strip;          // one character; at most `strip_start` of them fall away at the beginning
  int64_t strip_start = 0;    // of a text
  std::string first_without;  // this is left out of the first token (Metaspace)
};

class TokenTexts {
 public:
  TokenTexts() = default;
  TokenTexts(DecoderRules rules, std::vector<std::string> spelling);  // [V]

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  const std::string& bytes(int32_t id) const { return bytes_[id]; }  // within a text; 0 <= id < size()

  // Joins tokens one by one. Bytes of "<0xE2>" tokens wait until another token comes: together they are UTF-8, or each
  // of them is U+FFFD.
  class Joiner {
   public:
    explicit Joiner(const TokenTexts& texts) : texts_(&texts), to_strip_(texts.rules_.strip_start) {}
    void add(int32_t id, std::string& out);
    void finish(std::string& out);

   private:
    void put(std::string_view text, std::string& out);

    const TokenTexts* texts_;
    std::string run_;  // bytes that wait
    int64_t to_strip_;
    bool begun_ = false;
  };

 private:
  DecoderRules rules_;
  std::vector<std::string> bytes_, first_;  // first_: of a token that begins a text, where that differs
  std::vector<uint8_t> is_byte_;
};

}  // namespace ucas

// What the tokenizer needs of Unicode: classes of characters (Unicode 16), normalisation form C (of
// Unicode 9, because that is what Hugging Face runs and models were trained behind).
// Bytes that are not UTF-8 are characters of their own (base/str.h), of no class, and pass through unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/str.h"

namespace ucas {

enum CharClass : uint8_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kSpace = 4,         // \s (White_Space)
  kWord = 8,          // \w: alphabetic, marks, decimal digits, connectors, joiners
  kComposing = 16,    // may change under NFC, alone or after its predecessor
  kPunctuation = 32,  // of Hugging Face's pre-tokenizer of that name
};
const uint8_t* char_classes();  // [0x110000], built at the first call
inline uint8_t char_class(uint32_t code) { return code < 0x110000 ? char_classes()[code] : uint8_t{0}; }

struct CodeRange {
  uint32_t first, last;
};
// Of all assigned characters of a general category, "Lu" or "L", sorted; empty: there is none of that name.
std::vector<CodeRange> category_ranges(std::string_view category);

// Normalisation form C; text that is in it already comes back as it is.
std::string nfc(std::string_view text);
bool may_change_under_nfc(std::string_view text);  // false: nfc(text) == text for certain

// How vocabulary files spell bytes. GPT-2's byte alphabet has one printable character for each (space is U+0120,
// newline U+010A); SentencePiece's kind has tokens "<0x0A>" for bytes of characters that are no tokens themselves.
// The bytes of a spelling; nothing when a character is not of the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);
std::string spelling_of_bytes(std::string_view bytes);

std::string byte_token(uint8_t byte);                             // "<0x0A>"
std::optional<uint8_t> byte_of_token(std::string_view spelling);  // nothing: not of that form

// Text that knows of each of its bytes where it comes from: from a template, whose special tokens mean tokens, or from
// data, in which the same characters are characters. Made by data/prompts, encoded by the tokenizer.

struct MarkedText {
  static constexpr char kTemplate = 't', kData = 'd';

  std::string text, origin;  // origin[i] is of text[i]

  MarkedText() = default;
  MarkedText(std::string_view bytes, char source) : text(bytes), origin(bytes.size(), source) {}

  size_t size() const { return text.size(); }
  MarkedText from(size_t begin) const {
    MarkedText out;
    out.text = text.substr(begin);
    out.origin = origin.substr(begin);
    return out;
  }
  void append(std::string_view bytes, char source) {
    text += bytes;
    origin.append(bytes.size(), source);
  }
};

}  // namespace ucas

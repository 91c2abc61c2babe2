#include "text/split/pretokenizer.h"

#include "text/unicode/unicode.h"

namespace ucas {

namespace {

bool is_newline(char c) { return c == '\r' || c == '\n'; }

uint8_t class_at(std::string_view text, size_t at) {
  unsigned char byte = static_cast<unsigned char>(text[at]);
  return byte < 0x80 ? char_classes()[byte] : char_class(char_at(text, at).code);
}

size_t length_at(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]) < 0x80 ? 1 : char_at(text, at).length;
}

// Past the characters from `at` whose class has a bit of `wanted`, or (wanted 0) none of letter, number and space.
size_t run_end(std::string_view text, size_t at, uint8_t wanted) {
  const uint8_t* classes = char_classes();
  while (at < text.size()) {
    unsigned char byte = static_cast<unsigned char>(text[at]);
    Char c = byte < 0x80 ? Char{byte, 1} : char_at(text, at);
    uint8_t kind = c.code < 0x110000 ? classes[c.code] : uint8_t{0};
    if (wanted != 0 ? (kind & wanted) == 0 : (kind & (kLetter | kNumber | kSpace)) != 0) break;
    at += c.length;
  }
  return at;
}

bool is_other(uint8_t kind) { return (kind & (kLetter | kNumber | kSpace)) == 0; }

// 's 't 're 've 'm 'll 'd after an apostrophe at `at`; returns the end, or `at` when there is none.
size_t contraction_end(std::string_view text, size_t at, bool fold_case) {
  auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return 0;
    char c = text[i];
    return fold_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  char a = letter(at + 1), b = letter(at + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
  // U+017F (long s) is the one other character that folds to a letter of the list.
  if (fold_case && text.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
  return at;
}

// \s+(?!\S)|\s+ on the run [at, end): the last character is left for what follows, unless nothing follows.
size_t space_end(std::string_view text, size_t at, size_t end) {
  if (end == text.size()) return end;
  size_t last = end - char_before(text, end).length;
  return last > at ? last : end;
}

// '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_end(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    size_t end = contraction_end(text, at, false);
    if (end > at) return end;
  }
  size_t first = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  uint8_t kind = class_at(text, first);
  if ((kind & kSpace) != 0) return space_end(text, at, run_end(text, at, kSpace));
  return run_end(text, first, kind & (kLetter | kNumber));
}

// At most `most` characters of \p{N} from `at` on.
size_t digits_end(std::string_view text, size_t at, int most) {
  for (; most > 0 && at < text.size() && (class_at(text, at) & kNumber) != 0; --most) at += length_at(text, at);
  return at;
}

// Qwen2 and Llama 3, alternative by alternative; they part at how many digits are one piece.
template <int kDigits>
size_t qwen2_end(std::string_view text, size_t at) {
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)
  if (text[at] == '\'') {
    size_t end = contraction_end(text, at, true);
    if (end > at) return end;
  }
  uint8_t kind = class_at(text, at);
  size_t next = at + length_at(text, at);
  uint8_t next_kind = next < text.size() ? class_at(text, next) : uint8_t{0};
  // [^\r\n\p{L}\p{N}]?\p{L}+
  if ((kind & kLetter) != 0) return run_end(text, next, kLetter);
  if ((kind & kNumber) == 0 && !is_newline(text[at]) && (next_kind & kLetter) != 0) return run_end(text, next, kLetter);
  // \p{N}{1,kDigits}
  if ((kind & kNumber) != 0) return digits_end(text, next, kDigits - 1);
  // [ ]?[^\s\p{L}\p{N}]+[\r\n]*
  bool space_then_other = text[at] == ' ' && next < text.size() && is_other(next_kind);
  if (is_other(kind) || space_then_other) {
    size_t end = run_end(text, next, 0);
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }
  // \s*[\r\n]+ : up to the last newline of the run of white space
  size_t end = run_end(text, at, kSpace);
  for (size_t i = end; i > at; --i) {
    if (is_newline(text[i - 1])) return i;
  }
  // \s+(?!\S)|\s+
  return space_end(text, at, end);
}

constexpr SplitPattern kPatterns[] = {
    {"GPT-2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", gpt2_end},
    {"Qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     qwen2_end<1>},
    {"Llama 3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     qwen2_end<3>},
};

}  // namespace

const SplitPattern& gpt2_pattern() { return kPatterns[0]; }

const SplitPattern* known_pattern(std::string_view expression) {
  for (const SplitPattern& pattern : kPatterns) {
    if (expression == pattern.expression) return &pattern;
  }
  return nullptr;
}

}  // namespace ucas

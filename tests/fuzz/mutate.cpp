#include "fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <set>

namespace ucas::fuzz {

namespace {

constexpr std::array kWords = {"null",
                               "true",
                               "false",
                               "{}",
                               "[]",
                               "\"\"",
                               "[[[[[[[[",
                               "}}}}",
                               "{\"a\":",
                               "-1",
                               "0",
                               "1e999",
                               "-1e999",
                               "1e-400",
                               "NaN",
                               "Infinity",
                               "4294967295",
                               "4294967296",
                               "9223372036854775807",
                               "-9223372036854775808",
                               "18446744073709551615",
                               "18446744073709551616",
                               "0.1",
                               "-0",
                               "1e18",
                               "\\u0000",
                               "\\ud800",
                               "\\udc00",
                               "\\uffff",
                               "\\\\",
                               "\\\"",
                               "\xef\xbb\xbf",
                               "\xff",
                               "\xc0\xaf",
                               "\xed\xa0\x80",
                               "\xf4\x90\x80\x80",
                               "\xe2\x80\xae",
                               "../",
                               "/etc/passwd",
                               "\x1b[2J",
                               "\n",
                               "\r\n",
                               ",",
                               ":",
                               "\t",
                               "%",
                               "{{",
                               "}}",
                               "{%",
                               "%}",
                               "((a+)+)+$",
                               "\\p{L}",
                               "(?i:",
                               "\\frac",
                               "\\sqrt",
                               "\\boxed{",
                               "^{99999",
                               "!",
                               "PAR1",
                               "-9999999999",
                               "99999999",
                               "nan",
                               "inf"};
constexpr std::array<uint64_t, 14> kNumbers = {
    0, 1, 7, 127, 255, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 32, 1ULL << 62, 1ULL << 63, ~0ULL};
constexpr size_t kMostWords = 4000;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

Mutator::Mutator(uint64_t seed, const std::vector<std::string>& seeds, size_t most_bytes)
    : state_(seed * 0x9e3779b97f4a7c15ULL + 1), most_(most_bytes), words_(kWords.begin(), kWords.end()) {
  std::set<std::string> found;
  for (const std::string& text : seeds) {
    for (size_t at = 0; at < text.size() && found.size() < kMostWords;) {
      size_t end = at;
      while (end < text.size() && is_word(text[end])) ++end;
      if (end - at > 1 && end - at < 40) found.insert(text.substr(at, end - at));
      at = std::max(end, at + 1);
    }
  }
  words_.insert(words_.end(), found.begin(), found.end());
}

size_t Mutator::below(size_t n) {  // xorshift64*
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return n == 0 ? 0 : static_cast<size_t>((state_ * 0x2545f4914f6cdd1dULL) >> 33) % n;
}

const std::string& Mutator::word() { return words_[below(below(2) == 0 ? kWords.size() : words_.size())]; }

void Mutator::change_byte(std::string& text) {
  const size_t at = below(text.size());
  switch (below(4)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      return;
    case 1:
      text[at] = static_cast<char>(below(256));
      return;
    case 2:
      text.insert(at, 1, static_cast<char>(below(256)));
      return;
    default: {  // a number as formats of bytes hold it
      const uint64_t number = kNumbers[below(kNumbers.size())] + below(3) - 1;
      const size_t width = size_t{1} << below(4);
      if (at + width <= text.size()) std::memcpy(text.data() + at, &number, width);
    }
  }
}

void Mutator::change_piece(std::string& text, const std::string& other) {
  const size_t at = below(text.size()), size = 1 + below(below(2) == 0 ? 16 : text.size() - at);
  const std::string piece = text.substr(at, size);
  switch (below(5)) {
    case 0:
      text.erase(at, size);
      return;
    case 1:
      text.insert(below(text.size() + 1), piece);
      return;
    case 2: {  // many times: nesting, long lists, long words
      std::string many;
      for (size_t times = size_t{1} << below(13); times > 0 && many.size() + piece.size() < most_; --times)
        many += piece;
      text.insert(at, many);
      return;
    }
    case 3:
      text.resize(at);
      return;
    default:
      if (other.empty()) return;
      const size_t from = below(other.size());
      text.replace(at, below(2) * piece.size(), other.substr(from, 1 + below(other.size() - from)));
  }
}

void Mutator::change_number(std::string& text) {
  size_t at = text.find_first_of("0123456789", below(text.size()));
  if (at == std::string::npos) return change_byte(text);
  size_t end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  const uint64_t number = kNumbers[below(kNumbers.size())] + below(3) - 1;
  text.replace(at, end - at, (below(4) == 0 ? "-" : "") + std::to_string(number));
}

void Mutator::change_word(std::string& text) {
  size_t at = below(text.size());
  if (below(2) == 0) {
    text.insert(at, word());
    return;
  }
  while (at > 0 && is_word(text[at - 1])) --at;
  size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  text.replace(at, end - at, word());
}

void Mutator::once(std::string& text, const std::string& other) {
  if (text.empty()) text = word();
  switch (below(8)) {
    case 0:
    case 1:
      return change_byte(text);
    case 2:
    case 3:
      return change_number(text);
    case 4:
    case 5:
      return change_word(text);
    default:
      return change_piece(text, other);
  }
}

std::string Mutator::change(const std::string& input, const std::string& other) {
  std::string text = input;
  for (size_t n = size_t{1} << below(4); n > 0; --n) once(text, other);
  if (text.size() > most_) text.resize(most_);
  return text;
}

}  // namespace ucas::fuzz

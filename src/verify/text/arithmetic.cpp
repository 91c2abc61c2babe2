#include "verify/text/arithmetic.h"

#include <charconv>
#include <utility>

#include "verify/math/read/letters.h"

namespace ucas::arithmetic {

namespace {

constexpr int64_t kLargestNumber = 1'000'000'000;
constexpr int kDeepest = 64;  // parentheses inside parentheses

// Texts that mean an operator or a parenthesis, the longer of two that begin alike first.
constexpr std::pair<std::string_view, char> kSymbols[] = {
    {"\\times", '*'}, {"\\cdot", '*'}, {"\\div", '/'},  {"\\left(", '('}, {"\\right)", ')'}, {"\u00d7", '*'},
    {"\u00f7", '/'},  {"\u2212", '-'}, {"\u00b7", '*'}, {"+", '+'},       {"-", '-'},        {"*", '*'},
    {"/", '/'},       {"(", '('},      {")", ')'},      {"=", '='}};

}  // namespace

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > kLargestNumber) return std::nullopt;
  return value < -kLargestNumber ? std::nullopt : std::optional(value);
}

char symbol_at(std::string_view text, size_t at, size_t& size) {
  const std::string_view rest = text.substr(at);
  for (const auto& [written, symbol] : kSymbols) {
    if (!rest.starts_with(written)) continue;
    size = written.size();
    return symbol;
  }
  const bool before = at > 0 && !math::is_letter(text[at - 1]),
             after = at + 1 < text.size() && !math::is_letter(text[at + 1]);
  size = 1;
  return text[at] == 'x' && before && after ? '*' : '\0';
}

std::optional<std::string> symbols_of(std::string_view text) {
  std::string plain;
  for (size_t at = 0, size = 1; at < text.size(); at += size) {
    size = 1;
    const char c = text[at];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (!plain.empty() && plain.back() != ' ') plain += ' ';
    } else if (math::is_digit(c)) {
      plain += c;
    } else if (const char symbol = symbol_at(text, at, size); symbol != '\0') {
      plain += symbol;
    } else {
      return std::nullopt;
    }
  }
  std::string tight;
  for (size_t i = 0; i < plain.size(); ++i) {
    const bool between = i > 0 && i + 1 < plain.size() && math::is_digit(plain[i - 1]) && math::is_digit(plain[i + 1]);
    if (plain[i] != ' ' || between) tight += plain[i];
  }
  return tight;
}

std::optional<Fraction> Evaluation::run() {
  const Fraction value = sum(0);
  if (problem_ == nullptr && at_ != text_.size()) problem_ = "not an arithmetic expression";
  return problem_ == nullptr ? std::optional(value) : std::nullopt;
}

Fraction Evaluation::fail(const char* problem, bool readable) {
  if (problem_ == nullptr) {
    problem_ = problem;
    readable_ = readable;
  }
  at_ = text_.size();
  return {};
}

// above / below in lowest terms, where both fit.
Fraction Evaluation::reduced(__int128 above, __int128 below) {
  if (below == 0) return fail("divides by zero", true);
  if (below < 0) above = -above, below = -below;
  __int128 a = above < 0 ? -above : above, b = below;
  while (b != 0) std::swap(a %= b, b);
  if (a > 1) above /= a, below /= a;
  constexpr __int128 kMost = INT64_MAX;
  if (above > kMost || above < -kMost || below > kMost) return fail("its numbers are too large", true);
  return {static_cast<int64_t>(above), static_cast<int64_t>(below)};
}

Fraction Evaluation::combine(char symbol, const Fraction& a, const Fraction& b) {
  const __int128 aa = a.above, ab = a.below, ba = b.above, bb = b.below;
  ++operators_;
  if (symbol == '*') return reduced(aa * ba, ab * bb);
  if (symbol == '/') return reduced(aa * bb, ab * ba);
  // Each product is below 2^126, their sum below 2^127.
  return reduced(symbol == '+' ? aa * bb + ba * ab : aa * bb - ba * ab, ab * bb);
}

Fraction Evaluation::sum(int depth) {
  Fraction value = product(depth);
  while (problem_ == nullptr && (next() == '+' || next() == '-')) {
    const char symbol = text_[at_++];
    value = combine(symbol, value, product(depth));
  }
  return value;
}

Fraction Evaluation::product(int depth) {
  Fraction value = factor(depth);
  while (problem_ == nullptr && (next() == '*' || next() == '/')) {
    const char symbol = text_[at_++];
    value = combine(symbol, value, factor(depth));
  }
  return value;
}

Fraction Evaluation::factor(int depth) {
  if (problem_ != nullptr) return {};
  if (next() == '(') {
    if (depth == kDeepest) return fail("its parentheses are too deep");
    ++at_;
    const Fraction value = sum(depth + 1);
    if (problem_ == nullptr && next() != ')') return fail("a parenthesis is not closed");
    ++at_;
    return value;
  }
  size_t end = at_;
  while (end < text_.size() && math::is_digit(text_[end])) ++end;
  if (end == at_) return fail("not an arithmetic expression");
  const std::string_view digits = text_.substr(at_, end - at_);
  if (digits.size() > 1 && digits[0] == '0') return fail("a number begins with 0");
  const auto number = whole_number(digits);
  if (!number) return fail("its numbers are too large", true);
  at_ = end;
  numbers_.push_back(*number);
  return {*number, 1};
}

}  // namespace ucas::arithmetic

// Numerals: where one ends, and which commas, spaces and letters are part of it.
#include <algorithm>

#include "verify/math/read/lexer.h"

#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

// Length of a separator between groups of three digits that can be nothing else: {,} ,\! \! \, and \  ; 0 for none.
size_t definite_separator(std::string_view text) {
  constexpr std::string_view kForms[] = {"{,\\!}", "{\\,}", ",\\!", "\\,", "\\!", "\\ ", "{ }", "~"};
  if (size_t open = text.find_first_not_of(' '); open != std::string_view::npos && text[open] == '{') {  // {, }
    size_t comma = text.find_first_not_of(' ', open + 1);
    size_t close = comma == std::string_view::npos ? comma : text.find_first_not_of(' ', comma + 1);
    if (close != std::string_view::npos && text[comma] == ',' && text[close] == '}') {
      size_t next = text.find_first_not_of(" !\\", close + 1);
      return std::min(next, text.size());
    }
  }
  for (std::string_view form : kForms) {
    if (!text.starts_with(form)) continue;
    size_t length = form.size();
    if (form.front() == ',' && text.size() > length && text[length] == ' ') ++length;  // 11,\! 111
    return length;
  }
  return 0;
}

bool three_digits(std::string_view text) {
  return text.size() >= 3 && is_digit(text[0]) && is_digit(text[1]) && is_digit(text[2]) &&
         (text.size() == 3 || !is_digit(text[3]));
}

}  // namespace

// Where 1,234,567 ends when its commas or spaces separate thousands: the first group has one to three digits and does
// not begin with 0, every other has three, and the same sign parts them all; `end` is where the first group ends.
// Otherwise `end`.
size_t Lexer::thousands_end(size_t end) const {
  std::string_view text = buffer_;
  char separator = at(end);
  if (end - i_ > 3 || at(i_) == '0' || (separator != ',' && separator != ' ')) return end;
  bool zeros = false;
  size_t last = end;
  while (at(last) == separator && is_digit(at(last + 1))) {
    if (!three_digits(text.substr(last + 1))) return end;
    zeros |= at(last + 1) == '0';
    last += 4;
  }
  // Between brackets a comma parts elements, except before a group that begins with 0: (1,006) is no pair.
  bool elements = !brackets_.empty() && brackets_.back() != '{';
  if (last == end || (elements && !zeros) || (separator == ' ' && (elements || is_letter(at(last))))) return end;
  // In a longer list such as 5,103,105 the numbers stand alone.
  if (!tokens_.empty() && !space_ && tokens_.back().kind == TokenKind::symbol && tokens_.back().symbol == ',')
    return end;
  return last;
}

// Digits and points from `end` up to `to`.
void Lexer::take_digits(size_t& end, size_t to) {
  for (; end < to; ++end) {
    if (is_digit(buffer_[end]) || buffer_[end] == '.') digits_.push_back(buffer_[end]);
  }
}

void Lexer::take_run(size_t& end) {
  size_t to = end;
  while (is_digit(at(to))) ++to;
  take_digits(end, to);
}

// The rest of 1{,}234\,567 and 1,234,567; false for a number without groups.
bool Lexer::take_groups(size_t& end, size_t begin) {
  bool grouped = false, zero = digits_.compare(begin, std::string::npos, "0") == 0;
  while ((end - i_ <= 3 && !zero) || grouped) {
    size_t length = definite_separator(std::string_view(buffer_).substr(end));
    if (length == 0 || !three_digits(std::string_view(buffer_).substr(end + length))) break;
    end += length;
    take_run(end);
    grouped = true;
  }
  if (grouped) return true;
  size_t last = thousands_end(end);
  if (last == end) return false;
  take_digits(end, last);
  return true;
}

// The point and the decimals. "3." ends a sentence, "3.5" does not; "3.5.1" is no number. 3{,}5 is 3.5 where it cannot
// part thousands.
bool Lexer::take_decimals(size_t& end, bool grouped) {
  std::string_view rest = std::string_view(buffer_).substr(end);
  bool comma = !grouped && rest.starts_with("{,}") && is_digit(at(end + 3));
  bool repeating =
      rest.starts_with(".\\overline{") || (rest.starts_with(".(") && is_digit(at(end + 2))) ||
      ((rest.starts_with(".\\dot") || rest.starts_with(".\\bar")) && (is_digit(at(end + 5)) || is_digit(at(end + 6))));
  if (!comma && !repeating && (at(end) != '.' || !is_digit(at(end + 1)))) return false;
  digits_.push_back('.');
  end += comma ? 3 : 1;
  if (repeating) return true;
  take_run(end);
  while (!comma) {  // 3.141\,592: groups of decimals
    size_t length = definite_separator(std::string_view(buffer_).substr(end));
    if (length == 0 || at(end) == ',' || !three_digits(std::string_view(buffer_).substr(end + length))) break;
    end += length;
    take_run(end);
  }
  return true;
}

// How many decimals repeat: 0.1\overline{6}, 0.1\dot{6}, 0.\dot{1}4\dot{2}, 0.(3).
int32_t Lexer::take_period(size_t& end) {
  std::string_view rest = std::string_view(buffer_).substr(end);
  bool dotted = rest.starts_with("\\dot"), barred = rest.starts_with("\\bar");
  auto group = [&](size_t from) {  // the end of {6} or 6 at `from`, kNone for anything else
    char close = at(from) == '{' ? '}' : at(from) == '(' ? ')' : '\0';
    size_t to = from + (close != '\0'), first = to;
    while (is_digit(at(to)) && (close != '\0' || to == first)) ++to;
    return to == first || (close != '\0' && at(to) != close) ? kNone : to + (close != '\0');
  };
  // 0.1(6) is one where it is the whole of the answer, and else a product
  bool whole = tokens_.empty() && at(i_) == '0' && rest.find(')') + 1 == rest.size();
  bool bracket = rest.starts_with("(") && (at(end - 1) == '.' || whole);
  if (!dotted && !bracket && !barred && !rest.starts_with("\\overline{")) return 0;
  size_t begin = digits_.size(), to = group(dotted || barred ? end + 4 : bracket ? end : buffer_.find('{', end));
  if (to == kNone) return 0;
  for (size_t more = to; dotted && more < buffer_.size();) {  // up to the last digit with a dot
    while (is_digit(at(more))) ++more;
    size_t last = buffer_.compare(more, 4, "\\dot") == 0 ? group(more + 4) : kNone;
    if (last == kNone) break;
    more = to = last;
  }
  for (; end < to; ++end) {
    if (is_digit(at(end))) digits_.push_back(at(end));
  }
  return static_cast<int32_t>(digits_.size() - begin);
}

// 3.2e-5, and "2e-3" too, which is hardly ever a difference.
int32_t Lexer::take_exponent(size_t& end) {
  if ((at(end) != 'e' && at(end) != 'E') || style_ == Style::bold) return 0;
  size_t to = end + 1;
  bool minus = at(to) == '-', sign = minus || at(to) == '+';
  to += sign;
  size_t first = to;
  while (is_digit(at(to))) ++to;
  bool scientific = to > first && to - first <= 6 && !is_letter(at(to)) && at(to) != '.' && at(to) != '^' &&
                    !(sign && at(to) == '\\');
  if (!scientific) return 0;
  int32_t exponent = 0;
  for (size_t k = first; k < to; ++k) exponent = exponent * 10 + (buffer_[k] - '0');
  end = to;
  return minus ? -exponent : exponent;
}

// 0x1F, 0b101, 0o17: digits of base 16, 2 and 8 behind a prefix in either case, up to the end of the word.
bool Lexer::scan_prefixed() {
  if (at(i_) != '0') return false;
  char prefix = static_cast<char>(at(i_ + 1) | 32);
  int base = prefix == 'x' ? 16 : prefix == 'b' ? 2 : prefix == 'o' ? 8 : 0;
  if (base == 0) return false;
  auto is_digit_of = [&](char c) {
    int value = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
    return value < base;
  };
  size_t end = i_ + 2;
  while (is_digit_of(at(end))) ++end;
  if (end == i_ + 2 || is_digit(at(end)) || is_letter(at(end)) || at(end) == '.') return false;
  size_t begin = digits_.size();
  for (size_t k = i_ + 2; k < end; ++k) digits_.push_back(is_upper(at(k)) ? static_cast<char>(at(k) | 32) : at(k));
  i_ = end;
  pending_style_ = false;
  push({.kind = TokenKind::based, .exponent = base, .text = std::string_view(digits_).substr(begin)});
  return true;
}

void Lexer::scan_number() {
  if (scan_prefixed()) return;
  size_t begin = digits_.size(), end = i_;
  Token token;
  token.kind = TokenKind::number;
  take_run(end);
  token.grouped = take_groups(end, begin);
  bool point = digits_.find('.', begin) != std::string::npos;
  point = point || take_decimals(end, token.grouped);
  if (point) token.repeat = take_period(end);
  if (token.repeat == 0) token.exponent = take_exponent(end);
  token.text = std::string_view(digits_).substr(begin);
  i_ = end;
  pending_style_ = false;
  push(token);
}

}  // namespace ucas::math

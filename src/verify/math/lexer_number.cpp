// Numerals: where one ends, and which commas, spaces and letters are part of it.
#include <algorithm>

#include "verify/math/lexer.h"

namespace ucas::math {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

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

void Lexer::scan_number() {
  size_t begin = digits_.size(), end = i_;
  auto take = [&](size_t to) {
    for (; end < to; ++end) {
      if (is_digit(buffer_[end]) || buffer_[end] == '.') digits_.push_back(buffer_[end]);
    }
  };
  auto run = [&] {
    size_t to = end;
    while (is_digit(at(to))) ++to;
    take(to);
  };
  Token token;
  token.kind = TokenKind::number;
  run();
  bool grouped = false, zero = digits_.compare(begin, std::string::npos, "0") == 0;
  while ((end - i_ <= 3 && !zero) || grouped) {
    size_t length = definite_separator(std::string_view(buffer_).substr(end));
    if (length == 0 || !three_digits(std::string_view(buffer_).substr(end + length))) break;
    end += length;
    run();
    grouped = true;
  }
  if (size_t last = grouped ? end : thousands_end(end); last != end) {
    take(last);
    grouped = true;
  }
  bool point = std::find(digits_.begin() + static_cast<std::ptrdiff_t>(begin), digits_.end(), '.') != digits_.end();
  // "3." ends a sentence, "3.5" does not; "3.5.1" is no number. 3{,}5 is 3.5 where it cannot part thousands.
  if (!point && !grouped && buffer_.compare(end, 3, "{,}") == 0 && is_digit(at(end + 3))) {
    digits_.push_back('.');
    end += 3;
    run();
    point = true;
  } else if (!point && at(end) == '.' && is_digit(at(end + 1))) {
    digits_.push_back('.');
    ++end;
    run();
    point = true;
    while (true) {  // 3.141\,592: groups of decimals
      size_t length = definite_separator(std::string_view(buffer_).substr(end));
      if (length == 0 || at(end) == ',' || !three_digits(std::string_view(buffer_).substr(end + length))) break;
      end += length;
      run();
    }
  } else if (!point && at(end) == '.' && std::string_view(buffer_).substr(end + 1).starts_with("\\overline{")) {
    digits_.push_back('.');
    ++end;
    point = true;
  }
  if (point && (std::string_view(buffer_).substr(end).starts_with("\\overline{") ||
                std::string_view(buffer_).substr(end).starts_with("\\bar{"))) {
    size_t open = buffer_.find('{', end), to = open + 1;
    while (is_digit(at(to))) ++to;
    if (at(to) == '}' && to > open + 1) {
      token.repeat = static_cast<int32_t>(to - open - 1);
      end = open + 1;
      run();
      ++end;
    }
  }
  // 3.2e-5, and "2e-3" too, which is hardly ever a difference.
  if ((at(end) == 'e' || at(end) == 'E') && token.repeat == 0 && style_ != Style::bold) {
    size_t to = end + 1;
    bool sign = at(to) == '-' || at(to) == '+';
    to += sign;
    size_t first = to;
    while (is_digit(at(to))) ++to;
    bool scientific = to > first && to - first <= 6 && !is_letter(at(to)) && at(to) != '.' && at(to) != '^' &&
                      !(sign && at(to) == '\\');
    if (scientific) {
      for (size_t k = first; k < to; ++k) token.exponent = token.exponent * 10 + (buffer_[k] - '0');
      if (at(end + 1) == '-') token.exponent = -token.exponent;
      end = to;
    }
  }
  token.grouped = grouped;
  token.text = std::string_view(digits_).substr(begin);
  i_ = end;
  pending_style_ = false;
  push(token);
}

}  // namespace ucas::math

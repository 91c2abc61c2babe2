// Answer text to tokens. Spacing, sizes and fonts become flags, symbols of Unicode and aliases one spelling, thousands
// separators go. One pass over the text; tokens point into the lexer's own buffers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/math/read/macros.h"

namespace ucas::math {

enum class TokenKind : uint8_t {
  end,
  number,  // text: digits and at most one '.'
  based,   // 0x1F, 0b101, 0o17; text: the digits in lower case, exponent: the base
  word,    // a run of letters; text
  symbol,  // one character in `symbol`: + - * / ^ _ ( ) [ ] { } | ! % ' & , ; : P (\pm) M (\mp) U N D (set operations)
  relation,   // the letter of namespace relation in `symbol`
  command,    // anything else of the vocabulary; `command`
  row,        // line break of a matrix or a list of lines
  separator,  // \quad, a paragraph
  unknown,    // text: a command outside the vocabulary or a character without meaning
};

struct Token {
  TokenKind kind = TokenKind::end;
  Style style = Style::math;
  char symbol = 0;
  bool space_before = false;
  bool grouped = false;  // number: thousands separators were taken out; word: the whole of one \text{..}
  int32_t exponent = 0;  // number: of 3.2e-5; based: the base; 1 of \times
  int32_t repeat = 0;    // number: repeating decimals
  std::string_view text;
  const Command* command = nullptr;
};

class Lexer {
 public:
  // False, with a reason, where the bytes are no text: NUL and other control characters, invalid UTF-8.
  bool run(std::string_view text);
  std::vector<Token>& tokens() { return tokens_; }
  const char* reason() const { return reason_; }
  bool balanced() const { return balanced_; }  // braces match

 private:
  bool expand(std::string_view text);  // into buffer_
  void scan();
  void scan_number();
  bool scan_prefixed();
  void take_digits(size_t& end, size_t to);
  void take_run(size_t& end);
  bool take_groups(size_t& end, size_t begin);
  bool take_decimals(size_t& end, bool grouped);
  int32_t take_period(size_t& end);
  int32_t take_exponent(size_t& end);
  void scan_backslash();
  void scan_row();
  void scan_escaped(char c);
  void scan_word();
  void scan_command(std::string_view name);
  bool scan_stuck_command(std::string_view name);
  bool scan_plain_command(const Command& command, std::string_view name);
  bool scan_sided_bar(std::string_view name);
  void skip_argument();
  void scan_symbol(char c);
  bool scan_grouping(char c);
  char relation_at(char c, size_t& length) const;
  void scan_dollar();
  void open_brace();
  void close_brace();
  size_t thousands_end(size_t end) const;
  bool ends_value() const;  // the last token does
  void scan_circled();
  void push(Token token);
  void push_symbol(char c) { push({.kind = TokenKind::symbol, .symbol = c}); }
  void push_separator() { push({.kind = TokenKind::separator}); }
  char at(size_t i) const { return i < buffer_.size() ? buffer_[i] : '\0'; }

  std::string buffer_, digits_;
  std::vector<Token> tokens_;
  struct Brace {
    Style outer;
    bool hidden;
  };
  std::vector<Brace> styles_;   // of open braces
  std::vector<char> brackets_;  // open ( [ { |, where a comma parts elements
  Style style_ = Style::math, next_style_ = Style::math, outside_ = Style::math;
  bool pending_style_ = false, space_ = false, line_break_ = false, in_dollars_ = false, balanced_ = true;
  bool dollars_pair_ = false, boxed_ = false;
  int environments_ = 0;
  size_t i_ = 0;
  const char* reason_ = "";
};

}  // namespace ucas::math

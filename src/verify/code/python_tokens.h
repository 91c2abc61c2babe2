// The tokens of a piece of Python, for the reader of tested expressions.
#pragma once

#include <string_view>
#include <vector>

namespace ucas::code {

struct Token {
  enum class Type { name, number, text, formatted, mark, end };
  Type type = Type::end;
  std::string_view text;
};

// Without blanks, line breaks and comments. Views into the text.
std::vector<Token> tokens_of(std::string_view text);
int opens(const Token& token);      // 1: an opening bracket, -1: a closing one
bool compares(const Token& token);  // == .. >=, in, is
// The names, also those that a formatted text holds.
std::vector<std::string_view> names_in(std::string_view text);
// Python's logical lines: a line break inside brackets, texts or after a backslash ends nothing.
std::vector<std::string_view> logical_lines(std::string_view text);

}  // namespace ucas::code

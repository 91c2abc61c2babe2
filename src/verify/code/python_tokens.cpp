#include "verify/code/python_tokens.h"

#include <algorithm>

namespace ucas::code {

namespace {

bool is_name_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }

size_t text_end(std::string_view s, size_t at) {
  const bool triple = s.size() >= at + 3 && s[at + 1] == s[at] && s[at + 2] == s[at];
  const std::string_view close = s.substr(at, triple ? 3 : 1);
  for (size_t i = at + close.size(); i < s.size(); ++i) {
    if (s[i] == '\\') {
      ++i;
    } else if (s.substr(i).starts_with(close)) {
      return i + close.size();
    }
  }
  return s.size();
}

}  // namespace

std::vector<Token> tokens_of(std::string_view s) {
  static constexpr std::string_view kMarks[] = {
      "**=", "//=", "<<=", ">>=", "...", "==", "!=", "<=", ">=", "->", ":=", "+=",
      "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "**", "//", "<<", ">>"};
  std::vector<Token> out;
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    size_t end = i + 1;
    auto type = Token::Type::mark;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\' || c == '\f') {
      ++i;
      continue;
    }
    if (c == '#') {
      i = std::min(s.find('\n', i), s.size());
      continue;
    }
    if (starts_name(c)) {
      while (end < s.size() && (starts_name(s[end]) || is_name_digit(s[end]))) ++end;
      type = Token::Type::name;
      if (end < s.size() && (s[end] == '"' || s[end] == '\'') && end - i <= 2) {  // a prefix: f"..", rb".."
        type = s.substr(i, end - i).find_first_of("fFtT") == std::string_view::npos ? Token::Type::text
                                                                                    : Token::Type::formatted;
        end = text_end(s, end);
      }
    } else if (c == '"' || c == '\'') {
      type = Token::Type::text;
      end = text_end(s, i);
    } else if (is_name_digit(c) || (c == '.' && end < s.size() && is_name_digit(s[end]))) {
      type = Token::Type::number;
      while (end < s.size() && (starts_name(s[end]) || is_name_digit(s[end]) || s[end] == '.' ||
                                ((s[end] == '-' || s[end] == '+') && (s[end - 1] == 'e' || s[end - 1] == 'E')))) {
        ++end;
      }
    } else {
      for (std::string_view mark : kMarks) {
        if (s.substr(i).starts_with(mark)) {
          end = i + mark.size();
          break;
        }
      }
    }
    out.push_back({type, s.substr(i, end - i)});
    i = end;
  }
  return out;
}

int opens(const Token& token) {
  if (token.type != Token::Type::mark) return 0;
  if (token.text == "(" || token.text == "[" || token.text == "{") return 1;
  return token.text == ")" || token.text == "]" || token.text == "}" ? -1 : 0;
}

bool compares(const Token& token) {
  if (token.type == Token::Type::mark) {
    return token.text == "==" || token.text == "!=" || token.text == "<" || token.text == ">" || token.text == "<=" ||
           token.text == ">=";
  }
  return token.type == Token::Type::name && (token.text == "in" || token.text == "is");
}

std::vector<std::string_view> names_in(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Token& token : tokens_of(text)) {
    if (token.type == Token::Type::name) names.push_back(token.text);
    if (token.type != Token::Type::formatted) continue;
    for (const Token& inner : tokens_of(token.text.substr(token.text.find_first_of("'\"") + 1))) {
      if (inner.type == Token::Type::name) names.push_back(inner.text);
    }
  }
  return names;
}

}  // namespace ucas::code

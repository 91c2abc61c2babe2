#include "base/table_text.h"

#include <string_view>

#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kLongest = 400;

bool among(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

}  // namespace

std::string markdown_text(const std::string& text) {
  std::string out;
  for (char c : printable(text, kLongest)) {
    if (among(c, "|*_`<[]\\")) out += '\\';
    out += c;
  }
  return out;
}

std::string tex_text(const std::string& text) {
  std::string out;
  for (char c : printable(text, kLongest)) {
    if (c == '\\') {
      out += "\\textbackslash{}";
    } else if (c == '~') {
      out += "\\textasciitilde{}";
    } else if (c == '^') {
      out += "\\textasciicircum{}";
    } else {
      if (among(c, "&%$#_{}")) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string csv_text(const std::string& text) {
  std::string out = "\"";
  for (char c : printable(text, kLongest)) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace ucas

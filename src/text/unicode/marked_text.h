// Text that knows of each of its bytes where it comes from: from a template, whose special tokens mean tokens, or from
// data, in which the same characters are characters. Made by text/jinja, encoded by the tokenizer.
#pragma once

#include <string>
#include <string_view>

namespace ucas {

struct MarkedText {
  static constexpr char kTemplate = 't', kData = 'd';

  std::string text, origin;  // origin[i] is of text[i]

  MarkedText() = default;
  MarkedText(std::string_view bytes, char from) : text(bytes), origin(bytes.size(), from) {}

  size_t size() const { return text.size(); }
  MarkedText part(size_t begin, size_t count = std::string::npos) const {
    MarkedText out;
    out.text = text.substr(begin, count);
    out.origin = origin.substr(begin, count);
    return out;
  }
  void append(const MarkedText& other) {
    text += other.text;
    origin += other.origin;
  }
  void append(std::string_view bytes, char from) {
    text += bytes;
    origin.append(bytes.size(), from);
  }
};

}  // namespace ucas

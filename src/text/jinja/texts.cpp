#include "text/jinja/texts.h"

#include <algorithm>
#include <cctype>

#include "text/unicode/unicode.h"

namespace ucas::jinja {

namespace {

bool one_of(const MarkedText* chars, std::string_view text, size_t at, size_t length) {
  if (chars == nullptr) return python_space(char_at(text, at).code);
  const std::string_view one = text.substr(at, length);
  for (size_t i = 0; i < chars->size(); i += char_at(chars->text, i).length) {
    if (std::string_view(chars->text).substr(i, char_at(chars->text, i).length) == one) return true;
  }
  return false;
}

bool ends_line(uint32_t code) {
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

// Letters beyond ASCII that may have another case.
bool may_have_case(uint32_t code) {
  if (code >= 0x2100 && code < 0x2500) return true;
  const bool range = (code >= 0x80 && code < 0x2E80) || (code >= 0xA640 && code < 0xABC0) ||
                     (code >= 0xFF00 && code < 0xFF60) || (code >= 0x10400 && code < 0x20000);
  return range && (char_class(code) & kLetter) != 0;
}

}  // namespace

MarkedText stripped(const MarkedText& text, const MarkedText* chars, bool left, bool right) {
  if (chars != nullptr && chars->size() > 100) fail("strip() of more than 100 bytes of characters");
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const size_t length = char_at(text.text, begin).length;
    if (!one_of(chars, text.text, begin, length)) break;
    begin += length;
  }
  while (right && end > begin) {
    const size_t length = char_before(text.text, end).length;
    if (!one_of(chars, text.text, end - length, length)) break;
    end -= length;
  }
  return text.part(begin, end - begin);
}

MarkedText replaced(const MarkedText& text, const MarkedText& old, const MarkedText& by, int64_t most, Meter& meter) {
  if (old.size() == 0) fail("replace() of an empty text");
  charge_search(text.text, old.text, meter);
  MarkedText out;
  size_t at = 0;
  for (int64_t i = 0; most < 0 || i < most; ++i) {
    const size_t found = text.text.find(old.text, at);
    if (found == std::string::npos) break;
    out.append(text.part(at, found - at));
    out.append(by);
    meter.steps();
    meter.text_size(out.size());
    at = found + old.size();
  }
  out.append(text.part(at));
  return out;
}

std::vector<MarkedText> split_text(const MarkedText& text, const MarkedText* by, int64_t most, bool from_right,
                                   Meter& meter) {
  if (by != nullptr && by->size() == 0) fail("split() at an empty text");
  if (by == nullptr && most >= 0)
    fail("split() at white space with a limit is outside the part of Jinja that is read here");
  std::vector<MarkedText> parts;
  const std::string& all = text.text;
  if (by == nullptr) {
    for (size_t at = 0; at < all.size();) {
      while (at < all.size() && python_space(char_at(all, at).code)) at += char_at(all, at).length;
      size_t end = at;
      while (end < all.size() && !python_space(char_at(all, end).code)) end += char_at(all, end).length;
      if (end > at) parts.push_back(text.part(at, end - at));
      meter.steps();
      at = end;
    }
    return parts;
  }
  charge_search(all, by->text, meter);
  if (from_right) {
    size_t end = all.size();
    while (most < 0 || std::ssize(parts) < most) {
      const size_t found = end < by->size() ? std::string::npos : all.rfind(by->text, end - by->size());
      if (found == std::string::npos) break;
      parts.push_back(text.part(found + by->size(), end - found - by->size()));
      meter.steps();
      end = found;
    }
    parts.push_back(text.part(0, end));
    std::ranges::reverse(parts);
    return parts;
  }
  size_t at = 0;
  while (most < 0 || std::ssize(parts) < most) {
    const size_t found = all.find(by->text, at);
    if (found == std::string::npos) break;
    parts.push_back(text.part(at, found - at));
    meter.steps();
    at = found + by->size();
  }
  parts.push_back(text.part(at));
  return parts;
}

std::vector<MarkedText> lines_of(const MarkedText& text) {
  std::vector<MarkedText> lines;
  const std::string& all = text.text;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && !ends_line(char_at(all, end).code)) end += char_at(all, end).length;
    lines.push_back(text.part(begin, end - begin));
    if (end == all.size()) break;
    begin = end + (all.compare(end, 2, "\r\n") == 0 ? 2 : char_at(all, end).length);
  }
  return lines;
}

MarkedText in_case(const MarkedText& text, Case form) {
  MarkedText out = text;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text.text, at);
    if (c.code >= 0x80) {
      if (may_have_case(c.code)) {
        fail("the case of \"", text.text.substr(at, c.length), "\" is changed; only ASCII letters are here");
      }
      if (form != Case::words) in_word = in_word && form == Case::capitalize;
    } else {
      const int byte = static_cast<int>(c.code);
      const bool letter = std::isalpha(byte) != 0;
      const bool capital = form == Case::upper || (form != Case::lower && !in_word);
      if (letter) out.text[at] = static_cast<char>(capital ? std::toupper(byte) : std::tolower(byte));
      if (form == Case::title) in_word = letter;
      if (form == Case::capitalize) in_word = true;
      if (form == Case::words)
        in_word = !python_space(c.code) && std::string_view("-({[<").find(text.text[at]) == std::string_view::npos;
    }
    if (c.code >= 0x80 && form == Case::capitalize) in_word = true;
    if (c.code >= 0x80 && form == Case::words) in_word = !python_space(c.code);
    at += c.length;
  }
  return out;
}

}  // namespace ucas::jinja

#include "report/escape.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/str.h"

namespace ucas {

namespace {

struct Character {
  uint32_t code = 0;
  size_t length = 1;
  bool valid = true;
};

Character next_character(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  uint32_t b = byte(0);
  if (b < 0x80) return {b, 1, true};
  size_t n = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : 2;
  if (n > text.size() || !valid_utf8(text.substr(0, n))) return {b, 1, false};
  uint32_t code = n == 4 ? b & 7 : n == 3 ? b & 15 : b & 31;
  for (size_t i = 1; i < n; ++i) code = code << 6 | (byte(i) & 0x3f);
  return {code, n, true};
}

// Characters that must not act on the page: C0 and C1 controls but newline and tab, bidi marks, embeddings, overrides
// and isolates, zero-width and line-separator marks, tag characters, noncharacters.
bool acts_on_the_page(uint32_t c) {
  if (c == '\n' || c == '\t') return false;
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0xad || c == 0x180e || c == 0x200b || c == 0x200e ||
         c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff0 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c <= 0xe0fff);
}

std::string name_of_character(const Character& c) {
  const char* hex = "0123456789ABCDEF";
  if (!c.valid) return str("\\x", hex[c.code >> 4], hex[c.code & 15]);
  std::string digits;
  for (uint32_t rest = c.code; rest > 0 || digits.size() < 4; rest >>= 4) digits.insert(digits.begin(), hex[rest & 15]);
  return "U+" + digits;
}

const char* entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return nullptr;
  }
}

std::string escaped(std::string_view text, const char* before, const char* after, bool markup = true) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    Character c = next_character(text);
    if (!c.valid || acts_on_the_page(c.code)) {
      out += before;
      out += name_of_character(c);
      out += after;
    } else if (const char* safe = markup && c.length == 1 ? entity(text[0]) : nullptr) {
      out += safe;
    } else {
      out += text.substr(0, c.length);
    }
    text.remove_prefix(c.length);
  }
  return out;
}

// At most `limit`, and not inside a character.
size_t cut_at(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text.size();
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return limit;
}

}  // namespace

std::string html_text(std::string_view text) { return escaped(text, "[", "]"); }

std::string model_text(std::string_view text, size_t limit) {
  size_t cut = cut_at(text, limit);
  std::string out = escaped(text.substr(0, cut), "<i class=\"cc\">", "</i>");
  if (cut < text.size()) {
    out += str("<i class=\"cut\">", grouped(static_cast<int64_t>(text.size() - cut)), " more bytes not shown</i>");
  }
  return out;
}

std::string visible_text(std::string_view text, size_t limit) {
  size_t cut = cut_at(text, limit);
  return escaped(text.substr(0, cut), "[", "]", false) + (cut < text.size() ? "..." : "");
}

std::string script_json(std::string_view json) {
  constexpr std::pair<std::string_view, const char*> kEscaped[] = {
      {"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}, {"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}};
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const auto* found = std::ranges::find_if(kEscaped, [&](const auto& row) { return json.starts_with(row.first); });
    const bool acts = found != std::end(kEscaped);
    out += acts ? std::string_view(found->second) : json.substr(0, 1);
    json.remove_prefix(acts ? found->first.size() : 1);
  }
  return out;
}

}  // namespace ucas

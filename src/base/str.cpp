#include "base/str.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace ucas {

namespace {

template <class Number>
void append_number(std::string& out, Number value) {
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, error == std::errc() ? end : buffer);
}

unsigned char byte_at(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

// Table 3-7 of the Unicode standard: how long the sequence is that this lead byte opens, and the range of byte two.
struct Lead {
  size_t length;
  unsigned char low, high;
};

Lead lead(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0)
    return {3, byte == 0xE0 ? uint8_t{0xA0} : uint8_t{0x80}, byte == 0xED ? uint8_t{0x9F} : uint8_t{0xBF}};
  if (byte < 0xF5)
    return {4, byte == 0xF0 ? uint8_t{0x90} : uint8_t{0x80}, byte == 0xF4 ? uint8_t{0x8F} : uint8_t{0xBF}};
  return {0, 0, 0};
}

// Bytes from `at` that fit a well-formed character: all of it, or its beginning (then length < wanted).
size_t well_formed_prefix(std::string_view text, size_t at, const Lead& l) {
  size_t n = 1;
  while (n < l.length && at + n < text.size()) {
    unsigned char byte = byte_at(text, at + n);
    if (byte < (n == 1 ? l.low : 0x80) || byte > (n == 1 ? l.high : 0xBF)) break;
    ++n;
  }
  return n;
}

// U+202A .. U+202E and U+2066 .. U+2069: to a reader they change the order of what follows.
bool turns_direction(std::string_view character) {
  return (character >= "\xe2\x80\xaa" && character <= "\xe2\x80\xae") ||
         (character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9");
}

}  // namespace

void append(std::string& out, std::string_view value) { out.append(value); }
void append(std::string& out, double value) { append_number(out, value); }
void append(std::string& out, float value) { append_number(out, value); }
void append(std::string& out, int64_t value) { append_number(out, value); }
void append(std::string& out, uint64_t value) { append_number(out, value); }

std::string fixed(double value, int digits) {
  char buffer[400];
  int n = std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return std::string(buffer, static_cast<size_t>(std::max(0, std::min(n, 399))));
}

std::string percent(double share, int digits) { return fixed(100 * share, digits) + " %"; }

std::string grouped(int64_t value) {
  std::string digits = str(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value)), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out.push_back(',');
    out.push_back(digits[i]);
  }
  return value < 0 ? "-" + out : out;
}

std::string many(int64_t count, std::string_view noun) { return str(grouped(count), " ", noun, count == 1 ? "" : "s"); }

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 10) return fixed(seconds, 1) + "s";
  auto total = static_cast<int64_t>(std::llround(seconds));
  if (total < 60) return str(total, "s");
  auto two = [](int64_t n) { return n < 10 ? str("0", n) : str(n); };
  if (total < 3600) return str(total / 60, "m", two(total % 60), "s");
  return str(total / 3600, "h", two(total / 60 % 60), "m");
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return str(fixed(bytes, unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2), " ", units[unit]);
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string pad_left(std::string_view text, size_t width) {
  return std::string(width - std::min(width, characters(text)), ' ') + std::string(text);
}

std::string pad_right(std::string_view text, size_t width) {
  return std::string(text) + std::string(width - std::min(width, characters(text)), ' ');
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  const char* blank = " \t\r\n\f\v";
  size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  const char* hex = "0123456789abcdef";
  while (!text.empty()) {
    if (out.size() >= limit) return out + "...";
    auto byte = static_cast<unsigned char>(text[0]);
    const Char first = char_at(text, 0);
    const size_t n = first.code == kInvalid ? 0 : first.length;
    if (n == 3 && turns_direction(text.substr(0, 3))) {
      out += str("\\u20", hex[static_cast<unsigned char>(text[1]) == 0x80 ? 2 : 6], hex[text[2] & 15]);
      text.remove_prefix(3);
      continue;
    }
    bool c1 = n == 2 && byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;  // U+009B is ESC [ to a terminal
    if (n == 0 || byte < 0x20 || byte == 0x7f || c1) {
      out += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : str("\\x", hex[byte >> 4], hex[byte & 15]);
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, n));
      text.remove_prefix(n);
    }
  }
  return out;
}

bool valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code == kInvalid) return false;
    at += c.length;
  }
  return true;
}

Char char_at(std::string_view text, size_t at) {
  unsigned char first = byte_at(text, at);
  if (first < 0x80) return {first, 1};
  Lead l = lead(first);
  if (l.length == 0 || well_formed_prefix(text, at, l) < l.length) return {kInvalid, 1};
  uint32_t code = first & (0x7F >> l.length);
  for (size_t i = 1; i < l.length; ++i) code = code << 6 | (byte_at(text, at + i) & 0x3F);
  return {code, l.length};
}

Char char_before(std::string_view text, size_t end) {
  for (size_t length = 1; length <= 4 && length <= end; ++length) {
    if ((byte_at(text, end - length) & 0xC0) == 0x80) continue;
    Char found = char_at(text.substr(0, end), end - length);
    return found.length == length ? found : Char{kInvalid, 1};
  }
  return {kInvalid, 1};
}

void append_utf8(std::string& out, uint32_t code) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

size_t unfinished_tail(std::string_view text) {
  for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    size_t at = text.size() - length;
    if ((byte_at(text, at) & 0xC0) == 0x80) continue;
    Lead l = lead(byte_at(text, at));
    return l.length > length && well_formed_prefix(text, at, l) == length ? length : 0;
  }
  return 0;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    Lead l = lead(byte_at(text, at));
    size_t fits = l.length == 0 ? 1 : well_formed_prefix(text, at, l);
    if (l.length != 0 && fits == l.length) {
      out.append(text, at, fits);
    } else {
      out += "\xEF\xBF\xBD";
    }
    at += fits;
  }
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  if (word.size() > 200) return best;  // no typing error; the table below would be large
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        size_t substitute = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& near) { return near.empty() ? "" : str(" (did you mean ", near, "?)"); }

std::string wrap_text(const std::string& text, size_t width, size_t indent, size_t used) {
  std::string wrapped;
  size_t column = used;
  bool first = true;
  for (const std::string& word : split(text, ' ')) {
    if (!first && column + 1 + word.size() > width && column > indent) {
      wrapped += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
    first = false;
  }
  return wrapped;
}

std::string short_path(const std::string& text, int parts) {
  size_t at = text.size();
  for (int i = 0; i < parts; ++i) {
    size_t slash = at == 0 ? std::string::npos : text.rfind('/', at - 1);
    if (slash == std::string::npos || text.find(' ') < slash) return text;
    at = slash;
  }
  return at + 1 < text.size() ? text.substr(at + 1) : text;
}

}  // namespace ucas

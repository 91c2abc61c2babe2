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

// Length of the valid UTF-8 sequence at text[0], or 0.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char b = byte(0);
  if (b < 0x80) return 1;
  size_t n = b >= 0xf0 && b <= 0xf4 ? 4 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xc2 && b < 0xe0 ? 2 : 0;
  if (n == 0 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (b == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
  if (b == 0xed && byte(1) > 0x9f) return 0;  // surrogate
  if (b == 0xf0 && byte(1) < 0x90) return 0;  // overlong
  if (b == 0xf4 && byte(1) > 0x8f) return 0;  // beyond U+10FFFF
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
    size_t n = utf8_length(text);
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
  while (!text.empty()) {
    size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
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

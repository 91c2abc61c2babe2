#include "base/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/str.h"

namespace ucas {

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

struct Range32 {
  char32_t low, high;
};

// Two cells in every terminal that we know: East Asian wide and full-width forms, emoji.
constexpr Range32 kWide[] = {
    {0x1100, 0x115f}, {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23f3},   {0x25fd, 0x25fe},  {0x2614, 0x2615},
    {0x2648, 0x2653}, {0x267f, 0x26ff},   {0x2700, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b55},  {0x2e80, 0xa4cf},
    {0xa960, 0xa97f}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},  {0xff00, 0xff60},
    {0xffe0, 0xffe6}, {0x16fe0, 0x18dff}, {0x1aff0, 0x1b2ff}, {0x1f000, 0x1faff}, {0x20000, 0x3fffd}};
// Not seen, or seen elsewhere: C1 controls (a terminal may obey them: U+009B is ESC [), marks of direction, zero-width
// and filling characters, line separators, tags, private use.
constexpr Range32 kHidden[] = {
    {0x80, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
    {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xd800, 0xf8ff},
    {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0x10ffff}};

bool in(std::span<const Range32> ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(), [c](Range32 r) { return c >= r.low && c <= r.high; });
}

size_t cells_of(char32_t c) { return in(kWide, c) ? 2 : 1; }

// Bytes of the longest beginning that takes at most `width` cells.
size_t beginning(std::string_view text, size_t width) {
  size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    auto [c, n] = char_at(text, bytes);
    used += cells_of(c);
    if (used > width) break;
    bytes += n;
  }
  return bytes;
}

constexpr std::string_view kBlocks[] = {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr std::string_view kAscii[] = {"_", ".", "-", "~", "=", "+", "*", "#"};

const char* code_of(Ink ink) {
  switch (ink) {
    case Ink::strong:
      return "1";
    case Ink::faint:
      return "2";
    case Ink::good:
      return "32";
    case Ink::bad:
      return "31";
    case Ink::alarm:
      return "33";
    case Ink::plain:
      break;
  }
  return "";
}

}  // namespace

TerminalSize terminal_size(int descriptor) {
  winsize size{};
  TerminalSize result;
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return result;
  if (size.ws_col > 0) result.columns = size.ws_col;
  if (size.ws_row > 0) result.rows = size.ws_row;
  return result;
}

size_t output_width() { return ::isatty(STDOUT_FILENO) == 1 ? terminal_size(STDOUT_FILENO).columns : 0; }

bool colors_wanted() { return environment("NO_COLOR").empty(); }

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

std::string visible(std::string_view text, bool utf8) {
  std::string safe = printable(text, std::string::npos), out;
  std::string_view rest = safe;
  const char* hex = "0123456789abcdef";
  while (!rest.empty()) {
    auto [c, n] = char_at(rest, 0);
    if (c >= 0x80 && (!utf8 || in(kHidden, c))) {
      for (char byte : rest.substr(0, n)) {
        auto b = static_cast<unsigned char>(byte);
        out += str("\\x", hex[b >> 4], hex[b & 15]);
      }
    } else {
      out.append(rest.substr(0, n));
    }
    rest.remove_prefix(n);
  }
  return out;
}

size_t cells(std::string_view text) {
  size_t used = 0;
  while (!text.empty()) {
    auto [c, n] = char_at(text, 0);
    used += cells_of(c);
    text.remove_prefix(n);
  }
  return used;
}

std::string fit(std::string_view text, size_t width) {
  if (cells(text) <= width) return std::string(text);
  if (width <= 3) return std::string(text.substr(0, beginning(text, width)));
  return str(text.substr(0, beginning(text, width - 3)), "...");
}

std::string fit_middle(std::string_view text, size_t width) {
  if (cells(text) <= width || width < 12) return fit(text, width);
  size_t head = (width - 5) / 2, tail = width - 5 - head;
  size_t from = text.size(), used = 0;
  while (from > 0) {  // whole characters from the end
    size_t next = from - 1;
    while (next > 0 && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) --next;
    used += cells_of(char_at(text, next).code);
    if (used > tail) break;
    from = next;
  }
  return str(text.substr(0, beginning(text, head)), " ... ", text.substr(from));
}

std::string sparkline(std::span<const double> values, size_t width, bool utf8) {
  size_t n = values.size(), count = std::min(n, width);
  std::vector<double> cell(count, std::nan(""));
  for (size_t i = 0; i < count; ++i) {
    double sum = 0, known = 0;
    for (size_t j = i * n / count; j < (i + 1) * n / count; ++j) {
      if (!std::isfinite(values[j])) continue;
      sum += values[j];
      known += 1;
    }
    if (known > 0) cell[i] = sum / known;
  }
  double low = INFINITY, high = -INFINITY;
  for (double v : cell) {
    if (std::isnan(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  std::string out;
  for (double v : cell) {
    if (std::isnan(v)) {
      out += ' ';
      continue;
    }
    double share = high > low ? (v - low) / (high - low) : 0;  // overflow of the difference leaves NaN or 0
    auto level = static_cast<size_t>(std::clamp(std::isfinite(share) ? share * 8 : 0.0, 0.0, 7.0));
    out += utf8 ? kBlocks[level] : kAscii[level];
  }
  return out;
}

std::string progress_bar(double share, size_t width, bool utf8) {
  auto full =
      static_cast<size_t>(std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * static_cast<double>(width));
  std::string out;
  for (size_t i = 0; i < width; ++i) {
    out += i < full ? (utf8 ? "\u2501" : "#") : (utf8 ? "\u2500" : ".");
  }
  return out;
}

std::string plain_text(const InkedLine& line) {
  std::string out;
  for (const Inked& part : line) out += part.text;
  return out;
}

InkedLine fit(const InkedLine& line, size_t width) {
  InkedLine out;
  for (const Inked& part : line) {
    size_t used = cells(part.text);
    if (used > width) {
      out.push_back({fit(part.text, width), part.ink});
      break;
    }
    width -= used;
    out.push_back(part);
  }
  return out;
}

// To the first line of the block. A narrower window has broken its lines into more rows.
std::string LiveBlock::up(TerminalSize size) const {
  size_t rows = 0;
  for (const InkedLine& line : lines_) {
    size_t used = size.columns < columns_ ? cells(plain_text(line)) : 0;
    rows += std::max<size_t>(1, (used + size.columns - 1) / size.columns);
  }
  return rows == 0 ? "\r" : str("\r\033[", rows, "A");
}

// Without automatic line breaks, should a terminal find a character wider than we do.
std::string LiveBlock::block() const {
  std::string out = "\033[?7l";
  for (const InkedLine& line : lines_) {
    for (const Inked& part : line) {
      bool colored = colors_ && part.ink != Ink::plain && !part.text.empty();
      out += colored ? str("\033[", code_of(part.ink), "m", part.text, "\033[0m") : part.text;
    }
    out += "\033[K\r\n";
  }
  return out + "\033[?7h";
}

void LiveBlock::draw(const std::vector<InkedLine>& lines, TerminalSize size) {
  std::string out = up(size);
  lines_.clear();
  for (const InkedLine& line : lines) {
    if (lines_.size() + 1 >= size.rows) break;      // the cursor's own row
    lines_.push_back(fit(line, size.columns - 1));  // a full row makes some terminals break the line
  }
  columns_ = size.columns;
  write_(out + block() + "\033[J");
}

void LiveBlock::print_above(const std::string& message, TerminalSize size) {
  std::string text;
  for (const std::string& line : split(message, '\n')) text += line + "\r\n";
  std::string out = up(size) + "\033[J" + text;
  for (InkedLine& line : lines_) line = fit(line, size.columns - 1);
  columns_ = size.columns;
  write_(out + block());
}

}  // namespace ucas

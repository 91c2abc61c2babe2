// Small string tools: str(...) joins anything printable; numbers print shortest-exact unless a width is asked for.
// (g++ 12 has no <format>; the torch wheel's fmt would cost 3.4 s of compile time in each file that prints.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ucas {

void append(std::string& out, std::string_view value);
void append(std::string& out, double value);  // shortest text that reads back as the same double
void append(std::string& out, float value);   // the same for float
void append(std::string& out, int64_t value);
void append(std::string& out, uint64_t value);
inline void append(std::string& out, const char* value) { append(out, std::string_view(value)); }
inline void append(std::string& out, const std::string& value) { append(out, std::string_view(value)); }
inline void append(std::string& out, char value) { out.push_back(value); }
inline void append(std::string& out, bool value) { append(out, value ? "true" : "false"); }
template <class Int>
  requires(std::is_integral_v<Int> && !std::is_same_v<Int, char> && !std::is_same_v<Int, bool>)
void append(std::string& out, Int value) {
  if constexpr (std::is_signed_v<Int>) {
    append(out, static_cast<int64_t>(value));
  } else {
    append(out, static_cast<uint64_t>(value));
  }
}

template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

std::string fixed(double value, int digits);                // 3.14159, 2 -> "3.14"
std::string percent(double share, int digits = 1);          // 0.125 -> "12.5 %"
std::string grouped(int64_t value);                         // 1234567 -> "1,234,567"
std::string many(int64_t count, std::string_view noun);     // "1 problem", "1,200 problems"
std::string human_seconds(double seconds);                  // 75 -> "1m15s"; 3.2 -> "3.2s"
std::string human_bytes(double bytes);                      // 1.5e9 -> "1.40 GiB"
size_t characters(std::string_view text);                   // of UTF-8
std::string pad_left(std::string_view text, size_t width);  // to so many characters
std::string pad_right(std::string_view text, size_t width);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

// Control bytes and invalid UTF-8 as \xNN, marks that turn the direction of text as \u202e, cut to `limit` bytes: for
// text from files or models inside messages.
std::string printable(std::string_view text, size_t limit = 120);
bool valid_utf8(std::string_view text);

// UTF-8. Bytes that are not of it are characters of their own.
constexpr uint32_t kInvalid = 0xFFFFFFFF;  // the code of a byte that belongs to no well-formed character

struct Char {
  uint32_t code;
  size_t length;  // bytes
};

Char char_at(std::string_view text, size_t at);       // at < text.size()
Char char_before(std::string_view text, size_t end);  // end > 0
void append_utf8(std::string& out, uint32_t code);
// Bytes at the end of `text` that begin a character whose rest is missing: 0..3.
size_t unfinished_tail(std::string_view text);
// Each maximal broken sequence becomes one U+FFFD, as String::from_utf8_lossy and Python's "replace" do.
std::string replace_invalid(std::string_view text);

// Nearest of `candidates` to `word` by edit distance, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// " (did you mean NEAR?)" at the end of a message, "" where nothing is near.
std::string did_you_mean(const std::string& near);
inline std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  return did_you_mean(nearest(word, candidates));
}

// Text in lines of at most `width` columns, broken at spaces, all but the first indented by `indent`. The first line
// already holds `used` columns. A word longer than a line has one of its own.
std::string wrap_text(const std::string& text, size_t width, size_t indent, size_t used);

// The last `parts` parts of a path: "/data/runs/base/model", 2 -> "base/model". Text that is no path stays.
std::string short_path(const std::string& text, int parts);

// Names such as "val-core/*/acc/mean@1", where one * matches one character or more.
// Without a *, the same text.
inline bool matches_star(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return name.size() > before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

}  // namespace ucas

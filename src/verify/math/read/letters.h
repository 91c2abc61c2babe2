// Letters and digits of ASCII, whatever the locale, and words in lists.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace ucas::math {

constexpr size_t kNone = std::string_view::npos;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_letter(char c) { return is_lower(c) || is_upper(c); }
constexpr bool beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = is_upper(c) ? static_cast<char>(c + 32) : c;
  return out;
}

template <class List>
bool among(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// The words of a text that is a list, parted by single spaces.
template <class Visit>
constexpr void each_word(std::string_view list, Visit visit) {
  while (!list.empty()) {
    std::string_view word = list.substr(0, list.find(' '));
    visit(word);
    list.remove_prefix(std::min(word.size() + 1, list.size()));
  }
}

// Is `word` in such a list?
constexpr bool in_words(std::string_view list, std::string_view word) {
  bool found = false;
  each_word(list, [&](std::string_view one) { found |= one == word; });
  return found;
}

// How many names a table of groups has.
template <class Groups>
constexpr size_t words_in(const Groups& groups) {
  size_t count = 0;
  for (const auto& group : groups) each_word(group.names, [&](std::string_view) { ++count; });
  return count;
}

// How many characters `text` begins with for which `of` holds.
template <class Test>
size_t run_of(std::string_view text, Test of) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), of) - text.begin());
}

}  // namespace ucas::math

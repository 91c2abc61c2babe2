// Names such as "val-core/*/acc/mean@1", where one * stands for one character or more.
#pragma once

#include <string_view>

namespace ucas {

// Without a *, the same text.
inline bool matches_star(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return name.size() > before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

}  // namespace ucas

#include "explain/sources.h"

#include "base/str.h"

namespace ucas {

namespace {

// Where the comment of `line` begins, outside of quotes; npos if it has none.
size_t comment_at(const std::string& line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return i;
  }
  return std::string::npos;
}

std::string unquoted(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  return std::string(value);
}

}  // namespace

ConfigRemarks remarks_of(const std::string& toml) {
  ConfigRemarks remarks;
  std::string section;
  bool opening = true;
  for (const std::string& line : split(toml, '\n')) {
    const std::string_view text = trim(line);
    if (opening && text.starts_with('#')) {
      remarks.about += str(remarks.about.empty() ? "" : " ", trim(text.substr(1)));
      continue;
    }
    opening = false;
    if (text.starts_with('[') && text.ends_with(']')) section = str(text.substr(1, text.size() - 2), ".");
    const size_t equals = line.find('='), comment = comment_at(line);
    if (text.starts_with('#') || equals == std::string::npos || comment == std::string::npos || comment < equals)
      continue;
    const std::string_view whole = line;
    remarks.values.push_back({section + std::string(trim(whole.substr(0, equals))),
                              unquoted(trim(whole.substr(equals + 1, comment - equals - 1))),
                              std::string(trim(whole.substr(comment + 1)))});
  }
  return remarks;
}

}  // namespace ucas

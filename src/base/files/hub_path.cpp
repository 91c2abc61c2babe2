#include "base/files/hub_path.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/str.h"

namespace ucas {

bool is_hub_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

bool is_hub_repository(std::string_view name) {
  const size_t slash = name.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() && name[0] != '.' &&
         name[slash + 1] != '.' && std::ranges::count(name, '/') == 1 && name.find("--") == std::string_view::npos &&
         name.find("..") == std::string_view::npos &&
         std::ranges::all_of(name, [](char c) { return c == '/' || is_hub_letter(c); });
}

std::optional<HubOrigin> hub_origin(const std::string& path) {
  const std::vector<std::string> parts = split(path, '/');
  for (size_t i = 0; i + 2 < parts.size(); ++i) {
    if (parts[i + 1] != "snapshots") continue;
    for (const std::string prefix : {"models--", "datasets--"}) {
      if (!parts[i].starts_with(prefix)) continue;
      std::string name = parts[i].substr(prefix.size());
      const size_t dashes = name.find("--");
      if (dashes == std::string::npos) continue;
      name.replace(dashes, 2, "/");
      if (is_hub_repository(name)) return HubOrigin{name, parts[i + 2], prefix[0] == 'd'};
    }
  }
  return std::nullopt;
}

}  // namespace ucas

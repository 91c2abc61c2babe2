// Paths of the Hugging Face hub's cache, as texts: CACHE/models--ORG--NAME/snapshots/COMMIT/FILE. What is looked up
// there is hf/hub.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ucas {

bool is_hub_letter(char c);                     // of a name or a revision: letters, digits, - _ .
bool is_hub_repository(std::string_view name);  // "ORG/NAME", as the hub allows it

struct HubOrigin {
  std::string name, revision;  // "ORG/NAME" and the commit
  bool data_set = false;
};
// Where a file or directory of a snapshot comes from; nothing for any other path.
std::optional<HubOrigin> hub_origin(const std::string& path);

}  // namespace ucas

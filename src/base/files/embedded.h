// Files compiled into the binary: configs/*.toml, templates/*, report assets. The program never needs its source tree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

std::optional<std::string_view> embedded(std::string_view name);   // "configs/dapo-tiny.toml"
std::vector<std::string> embedded_names(std::string_view prefix);  // sorted
// Of a folder of TOML files: "dapo-tiny" for "configs/dapo-tiny.toml".
std::vector<std::string> embedded_stems(std::string_view folder);  // "configs/"

}  // namespace ucas

// Training configs as files: those compiled into the program, and a user's own. A file may build on another by
// `extends = "NAME"` (an embedded config, or a file next to it), and an embedded file may hold several configs, each a
// table [config.NAME] on top of the file's head. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

// A value as its file writes it, with the comment behind it, which says where it is from.
struct ConfigValue {
  std::string key, value, source;  // "objective.clip_high", "0.28", "paper, set-up table"
};

struct ConfigFile {
  std::vector<Setting> settings;    // those of what it extends first
  std::string about;                // the comment that it opens with, as one paragraph
  std::vector<ConfigValue> values;  // of the lines `key = value # comment`, by section; an override is in its place
};

// The embedded configs, sorted.
std::vector<std::string> config_names();
// A TOML file: a path, or the name of an embedded config ("dapo-tiny").
ConfigFile read_config(const std::string& path_or_name);
std::vector<Setting> read_config_file(const std::string& path_or_name);
// A config of its own with the values and comments of `file`, whatever it extends.
std::string config_text(const ConfigFile& file);

}  // namespace ucas

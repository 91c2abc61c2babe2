// Options, their values and metrics that were renamed. What earlier versions wrote (config.toml, steps.jsonl, the
// fingerprint of a checkpoint) is read through this table; a renamed option on the command line is refused with its new
// name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ucas {

struct Setting;  // base/text/fields.h

struct RenamedOption {
  std::string key, value;  // value: as it is typed now; "": any value, unchanged
};
// The new name of an option, dotted, also at the end of a longer key ("run.a.rollout.surplus"). `value`: as it is
// typed, for options whose values were renamed with them.
std::optional<RenamedOption> renamed_option(std::string_view key, std::string_view value);
// Of a setting from a file: under its new name.
void rename_option(Setting& setting);
// Of the text KEY = VALUE, a value in TOML's form.
std::string renamed_line(const std::string& line);
// What to write instead of a value that an option no longer has; "" for others. `key` as for renamed_option().
std::string removed_value(std::string_view key, std::string_view value);
// The name of a metric today.
std::string renamed_metric(const std::string& name);

}  // namespace ucas

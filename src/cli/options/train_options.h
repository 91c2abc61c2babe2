// The words of `ucas train CONFIG --key value`, read the same way by every command that takes a training config.
#pragma once

#include <string>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

// Short forms of the options that everyone types: --data, --val, --method, --preset, --max-hours, --bad_rows.
void expand_short_forms(std::vector<Setting>& settings);

// Removes option `key` from the settings and returns its value; "" where it is not there.
std::string take_option(std::vector<Setting>& settings, const std::string& key);

}  // namespace ucas

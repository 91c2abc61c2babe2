// What a config file says in its comments: why it is as it is, and where each value is from. For `ucas explain`.
// Threads: any; pure.
#pragma once

#include <string>
#include <vector>

namespace ucas {

struct ValueSource {
  std::string key, value, source;  // "objective.clip_high", "0.28", "paper, set-up table"
};

struct ConfigRemarks {
  std::string about;                // the comment that the file opens with, as one paragraph
  std::vector<ValueSource> values;  // those with a comment of their own, in order of the file
};

// Of a config in the form of those in configs/: a value a line, its comment behind it.
ConfigRemarks remarks_of(const std::string& toml);

}  // namespace ucas

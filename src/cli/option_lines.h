// The options of a command as rows, from the text that its fields() come to (options part of `ucas NAME --help`): for
// what is generated of all commands, shell completion and man pages.
#pragma once

#include <string>
#include <vector>

namespace ucas {

struct OptionLine {
  std::string key, type;             // "rollout.n", "INT"
  std::string help;                  // with range, choices and default
  std::vector<std::string> choices;  // of a NAME, and true or false of a BOOL
};

// Each key once, in order. An option without a word after its name has no type: a flag.
std::vector<OptionLine> option_lines(const std::string& options);

// All options of a command: those of its fields, then those that only its help text describes.
struct Command;
std::vector<OptionLine> options_of(const Command& command);

}  // namespace ucas

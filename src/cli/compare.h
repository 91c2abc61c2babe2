// What `ucas compare` holds against each other. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "compare/answers.h"

namespace ucas {

// The groups of these run directories, in order of the command line: one evaluation of each run. `asked`: its name, ""
// = the only one that all share. Errors: path, empty, config.
std::vector<AnswerGroup> compared_groups(const std::vector<std::string>& runs, const std::string& asked);

}  // namespace ucas

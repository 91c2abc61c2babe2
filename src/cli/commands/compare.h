// What `ucas compare` holds against each other.
#pragma once

#include <string>
#include <vector>

#include "compare/answers.h"
#include "records/run_record.h"

namespace ucas {

// The groups of these run directories, in order of the command line: one evaluation of each run. `asked`: its name, ""
// = the only one that all share. Errors: path, empty, config.
std::vector<AnswerGroup> compared_groups(const std::vector<std::string>& runs, const std::string& asked);

// The name of the evaluation with answers per problem that all of these runs have: as asked for, else the only one,
// validations of a training left out where there is another. Errors as above.
std::string choose_evaluation(const std::vector<RunRecord>& runs, const std::string& asked);

}  // namespace ucas

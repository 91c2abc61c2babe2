// The rows of problem files as their columns have them, for rewards that ask for more than a Problem holds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/problems.h"

namespace ucas {

// JSON texts by the problems' ids, of the rows that read_problems reads; of two with one id the first.
std::map<std::string, std::string> read_source_rows(const std::vector<std::string>& files,
                                                    const ProblemOptions& options);

}  // namespace ucas

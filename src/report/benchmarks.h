// An evaluation of several benchmarks as a table: a row a group, a column a benchmark, then the macro average (each
// benchmark counts the same) and the micro average (each problem does). And how evaluations differ.
#pragma once

#include <string>
#include <vector>

#include "compare/groups.h"
#include "results/table.h"

namespace ucas {

// For a page: one for greedy, mean@n and the largest pass@k; none unless an evaluation of `data` has several sources.
std::vector<Table> benchmark_tables(const std::vector<RunGroup>& groups, const std::string& data);

// What these groups' evaluations say differently of that, for people: "max_tokens of math500: 1024 | 3000".
std::vector<std::string> asked_differences(const std::vector<RunGroup>& groups, const std::string& data);

}  // namespace ucas

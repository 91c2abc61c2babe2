// An evaluation of several benchmarks as a table: a row a group, a column a benchmark, then the macro average (each
// benchmark counts the same) and the micro average (each problem does). And how the figures were made.
#pragma once

#include <string>
#include <vector>

#include "compare/groups.h"
#include "report/summary.h"

namespace ucas {

struct BenchmarkTable {
  std::string metric;                // "greedy", "mean@16", "pass@8"
  std::vector<std::string> columns;  // benchmarks, in order of the file; then "macro", "micro"
  std::vector<int64_t> problems;     // of each column; 0: not said
  std::vector<SummaryRow> rows;
};
// One for greedy, mean@n and the largest pass@k; none unless an evaluation of `data` has several sources.
std::vector<BenchmarkTable> benchmark_tables(const std::vector<RunGroup>& groups, const std::string& data);

std::string benchmarks_html(const std::vector<RunGroup>& groups, const std::string& data);
// What these groups' evaluations say differently of that, for people: "max_tokens of math500: 1024 | 3000".
std::vector<std::string> asked_differences(const std::vector<RunGroup>& groups, const std::string& data);

}  // namespace ucas

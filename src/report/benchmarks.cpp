#include "report/page/template.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/str.h"
#include "results/compare/answers.h"

namespace ucas {

namespace {

constexpr const char* kMacro = "macro";
constexpr const char* kMicro = "micro";

struct BenchmarkMetrics {
  bool greedy = false;
  int64_t mean = 0, pass = 0;  // largest k
};

void look(const EvalNumbers& numbers, BenchmarkMetrics& metrics) {
  metrics.greedy |= numbers.greedy.known();
  if (!numbers.mean_at.empty()) metrics.mean = std::max(metrics.mean, numbers.mean_at.back().k);
  if (!numbers.pass_at.empty()) metrics.pass = std::max(metrics.pass, numbers.pass_at.back().k);
}

}  // namespace

std::vector<Table> benchmark_tables(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<std::string> columns;
  std::map<std::string, int64_t> problems;
  BenchmarkMetrics metrics;
  bool macro = false;
  for (const EvalRecord* e : evaluations_of(groups, data)) {
    if (e->by_source.size() < 2) continue;
    look(*e, metrics);
    macro |= e->macro.has_value();
    problems[kMicro] = std::max(problems[kMicro], e->problems);
    for (const auto& [source, numbers] : e->by_source) {
      if (std::ranges::find(columns, source) == columns.end()) columns.push_back(source);
      problems[source] = std::max(problems[source], numbers.problems);
    }
  }
  if (columns.size() < 2) return {};
  if (macro) columns.push_back(kMacro);
  columns.push_back(kMicro);
  std::vector<std::string> names;
  if (metrics.greedy) names.push_back("greedy");
  if (metrics.mean > 0) names.push_back(str("mean@", metrics.mean));
  if (metrics.pass > 1) names.push_back(str("pass@", metrics.pass));
  std::vector<Table> tables;
  for (const std::string& metric : names) {
    Table table{.head = {""},
                .caption = str(metric == "greedy" ? "Greedy accuracy" : metric, " by benchmark, %"),
                .kind = "plain benchmarks"};
    for (const std::string& column : columns) {
      Cell head = column;
      if (problems[column] > 0) head.below = grouped(problems[column]);
      if (column == kMacro) head.about = "mean of the benchmarks, each counting the same";
      if (column == kMicro) head.about = "over all problems, each counting the same";
      table.head.push_back(std::move(head));
    }
    for (const RunGroup& group : groups) {
      std::vector<Cell> row = {name_cell(group)};
      bool any = false;
      for (const std::string& column : columns) {
        const SummaryCell cell = measured(group, data, metric, column == kMicro ? "" : column);
        row.push_back(value_cell(cell, true, true));
        any |= !cell.values.empty();
      }
      if (any) table.add(std::move(row));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<std::string> asked_differences(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<std::pair<std::string, std::vector<std::string>>> values;  // what, distinct values in order
  auto note = [&](const std::string& what, const std::string& value) {
    auto at = std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == what; });
    if (at == values.end()) at = values.insert(at, {what, {}});
    auto& seen = at->second;
    if (std::find(seen.begin(), seen.end(), value) == seen.end()) seen.push_back(value);
  };
  for (const EvalRecord* e : evaluations_of(groups, data)) {
    if (!e->asked) continue;
    for (const auto& [what, value] : settings_of(*e, true)) {
      if (!what.starts_with("seed")) note(what, printable(value, 200));
    }
  }
  std::vector<std::string> differences;
  for (const auto& [what, seen] : values) {
    if (seen.size() > 1) differences.push_back(str(what, ": ", join(seen, " | ")));
  }
  return differences;
}

}  // namespace ucas

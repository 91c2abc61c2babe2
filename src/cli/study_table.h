// The table of a study: a row per config with mean and standard deviation over seeds, every row against one reference.
// Made from run directories alone. Threads: any; pure functions of the runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/groups.h"
#include "report/run_reader.h"
#include "stats/intervals.h"
#include "stats/spread.h"

namespace ucas {

struct TableOptions {
  std::string title, command;        // head of the document; the command that makes it again
  std::string eval = "test";         // which evaluation: eval/NAME.json
  std::string reference;             // title of a row; "" = the first trained
  std::vector<std::string> columns;  // "greedy", "mean@16", "pass@4:math500", "greedy:*", "greedy:macro" ...; {} = all
  std::vector<std::string> compare;  // {} = greedy and mean@n
  std::vector<std::string> axes;     // of a grid: a map of `metric` over the last two
  std::string metric = "greedy";
  bool each_seed = false;  // every seed a row of the document too
  uint64_t seed = 0;       // of the bootstrap
};

// b - a, runs paired by seed, problems by id.
struct PairedRuns {
  int64_t seeds = 0, problems = 0;
  Figure over_seeds;           // mean difference with its 95 % t interval; no bounds for a single pair
  double p = kUnknown;         // of the paired t-test over seeds, two-sided
  Interval over_both{0, 0};    // 95 % bootstrap: seeds and problems drawn anew together
  bool has_bootstrap = false;  // the quantity is known per problem
  // Both intervals exclude zero (of those there are).
  bool told_apart() const;
};

// One value of a run's evaluation; unknown where it has none.
double evaluation_value(const EvalRecord& evaluation, const std::string& column);
// The columns that `column` stands for: "greedy:*" becomes "greedy:aime24" ...
std::vector<std::string> expand_column(const std::string& column, const std::vector<std::string>& sources);

// Pairs: `a` and `b` of equal length, evaluation i of both belongs together.
PairedRuns compare_pairs(const std::vector<const EvalRecord*>& a, const std::vector<const EvalRecord*>& b,
                         const std::string& column, uint64_t seed);

struct StudyCell {
  std::vector<double> values;  // in order of the row's runs; unknown where a run has none
  double mean = kUnknown, deviation = kUnknown;
};
struct StudyRow {
  std::string title;
  bool trained = false;
  std::vector<int64_t> seeds;
  std::vector<StudyCell> cells;     // per column
  std::vector<PairedRuns> against;  // per compared column; empty for the reference
};
struct StudyTable {
  TableOptions options;
  int64_t problems = 0, samples = 0;
  double temperature = kUnknown;
  std::vector<std::string> columns, compare;  // expanded
  std::vector<StudyRow> rows;
  std::string reference;
  std::vector<std::vector<std::pair<std::string, std::string>>> settings;  // of each row, where there are axes
};

// `runs`: run directories in the order of the rows.
StudyTable study_table(const std::vector<std::string>& runs, const TableOptions& options);

std::string table_markdown(const StudyTable& table);
std::string table_csv(const StudyTable& table);   // a line per row, column and seed ("all": mean and deviation)
std::string table_tex(const StudyTable& table);   // tabular with booktabs rules
std::string table_text(const StudyTable& table);  // for a terminal

}  // namespace ucas

// What the runs came to, in numbers: one row per group of runs, mean and standard deviation over seeds, intervals, and
// sentences about differences (results/compare/contrast.h), their p corrected together. Used by `ucas report`, the demo
// and the page.
#pragma once

#include <string>
#include <vector>

#include "results/compare/contrast.h"
#include "results/compare/groups.h"
#include "results/table.h"

namespace ucas {

struct SummaryColumn {
  std::string key;  // "greedy", "mean@16", "pass@64", "entropy", "length", "truncated", "unparseable"
  std::string title;
  std::string help;
  bool share = true;  // printed in percent
  bool main = false;  // accuracy: worth an interval bar
};

struct SummaryCell {
  std::vector<double> values;  // one per run that has it, in order of the group's runs
  std::vector<Figure> each;    // the same with the bounds over problems, as evaluated
  double mean = kUnknown, deviation = kUnknown;
  Figure interval;  // over problems for one run, over seeds (t) for several
  Cell shown(bool share) const { return Cell::mean({mean, interval.low, interval.high}, deviation, share); }
};

// Mean, deviation and interval from `values` and `each`; a share stays within 0 and 1.
void conclude(SummaryCell& cell, bool share);
// What the runs of a group reached on `data`, by a name of figure_named: over one source of its problems, over "macro"
// or, source "", over all of them.
SummaryCell measured(const RunGroup& group, const std::string& data, const std::string& metric,
                     const std::string& source = "");
// The figures over one set of problems, named as above; nullptr if the evaluation has not got it.
const EvalNumbers* numbers_of(const EvalRecord& evaluation, const std::string& source);
// The evaluations on `data` of all runs that have one.
std::vector<const EvalRecord*> evaluations_of(const std::vector<RunGroup>& groups, const std::string& data);

struct SummaryRow {
  const RunGroup* group = nullptr;
  std::vector<SummaryCell> cells;  // one per column
};

struct Difference {
  size_t from = 0, to = 0;  // indices of groups; the difference is `to` minus `from`
  std::string metric;       // "greedy pass@1", "mean@16"
  Contrast contrast;        // results/compare/contrast.h
  std::string sentence;     // for people
};

struct ResultTable {
  std::string data;  // what was evaluated
  int64_t problems = 0, samples = 0;
  double temperature = kUnknown;
  std::string interval;          // how the bounds over problems were made, as the evaluation says
  std::vector<Quantity> quoted;  // what the groups are compared by: greedy, mean@16
  std::vector<SummaryColumn> columns;
  std::vector<SummaryRow> rows;
  std::vector<Difference> differences;  // each trained group from each untrained, then from the first trained
  int64_t comparisons = 0;              // in the family that Holm's correction is over
};

// One per evaluated data set. Groups must outlive the result.
std::vector<ResultTable> results_of(const std::vector<RunGroup>& groups);

// The same for a terminal: aligned plain text in lines of at most `width` characters (0 = of any length), then the
// sentences.
std::string summary_table(const std::vector<ResultTable>& summaries, size_t width = 0);
std::string summary_table(const std::vector<std::string>& runs, size_t width = 0);  // run directories

}  // namespace ucas

// The table of a study: a row per config with mean and standard deviation over its runs, every row against one
// reference (compare/contrast.h). Made from run directories alone. Threads: any; pure functions of the runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/contrast.h"
#include "compare/groups.h"
#include "study/protocol.h"

namespace ucas {

struct TableOptions {
  std::string title, command;        // head of the document; the command that makes it again
  std::string eval = "test";         // which evaluation: eval/NAME.json
  std::string reference;             // title of a row; "" = the first trained
  std::vector<std::string> columns;  // "greedy", "pass@4:math500", "greedy:*", "steps_to@0.9" ...; {} = all
  std::vector<std::string> compare;  // {} = greedy and mean@n
  std::vector<std::string> axes;     // of a grid: a map of `metric` over the last two
  std::string metric = "greedy";
  bool each_seed = false;  // every run a row of the document too
  CompareOptions statistics;
  std::vector<std::string> gates;             // study/protocol.h
  std::map<std::string, std::string> titles;  // of rows by their names in the study, for gates and the decision
  StudyDecision decide;
};

// The columns that `column` stands for: "greedy:*" becomes "greedy:aime24" ...
std::vector<std::string> expand_column(const std::string& column, const std::vector<std::string>& sources);

// Of a training, by its steps: "steps_to@0.9" is the first step whose training accuracy (train/accuracy: right among
// all responses sampled in that step) is at least 0.9; "val_at@0.9" the validation accuracy at the first validation
// from that step on; "steps_to_val@0.9" is the first step whose validation accuracy is at least 0.9. Unknown where it
// was never reached. Compares methods at equal accuracy, beside equal steps.
double training_value(const StepTable& steps, const Quantity& quantity);

struct StudyCell {
  std::vector<double> values;                    // in order of the row's runs; unknown where a run has none
  std::vector<bool> censored;                    // where the run never got there: the value is a lower bound
  double mean = kUnknown, deviation = kUnknown;  // over the known; a lower bound where a value is one
  size_t known() const;
  size_t never() const;  // censored values
};
struct StudyRow {
  std::string title;
  bool trained = false;
  std::vector<RunLabel> runs;     // base and seed of each
  std::vector<StudyCell> cells;   // per column
  std::vector<Contrast> against;  // per compared column; empty for the reference
};
// What the row of a decision is above a placebo, per compared column.
struct PlaceboContrasts {
  std::string title;
  std::vector<Contrast> below;  // the row less the placebo
};
struct StudyTable {
  TableOptions options;
  int64_t problems = 0, samples = 0, base_samples = 0;
  double temperature = kUnknown;
  std::vector<std::string> columns, compare;  // expanded
  std::vector<StudyRow> rows;
  std::string reference;
  std::vector<GateResult> gates;
  std::vector<PlaceboContrasts> placebos;  // of the decision; a family of Holm's correction of their own
  std::string decision;                    // "" where none was asked for
  int64_t comparisons = 0;                 // of all rows and compared columns: the family of Holm's correction
  std::vector<std::vector<std::pair<std::string, std::string>>> settings;  // of each row, where there are axes
  // What a deviation is over: "4 seeds", "3 bases", "4 bases and seeds"; "" if every row has one run.
  std::string deviation_over() const;
};

// The row of a grid whose metric, a share, is highest. What was chosen as the highest of several is too high for its
// own runs, and an optimum at an end of an axis may lie beyond it.
struct BestCell {
  size_t row = 0, cells = 0;         // among the table's rows; rows of the grid that have the metric
  std::vector<std::string> at_edge;  // axes of several values where the row has the lowest or the highest
  // How far the highest of as many cells lies above their mean where all are equal, by the deviation of a cell's mean
  // over its runs; unknown where no cell has several runs.
  double by_chance = kUnknown;
};
// None where there are no axes, fewer than two cells, or the metric is no share.
std::optional<BestCell> best_cell(const StudyTable& table);

// `runs`: run directories in the order of the rows.
StudyTable study_table(const std::vector<std::string>& runs, const TableOptions& options);

std::string table_markdown(const StudyTable& table);
std::string table_csv(const StudyTable& table);   // a line per row, column and run ("all": mean and deviation)
std::string table_tex(const StudyTable& table);   // tabular with booktabs rules
std::string table_text(const StudyTable& table);  // for a terminal

}  // namespace ucas

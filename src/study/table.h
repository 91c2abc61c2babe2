// The table of a study: a row per config with mean and standard deviation over its runs, every row against one
// reference (results/compare/contrast.h). Made from run directories alone. Threads: any; pure functions of the runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/study_figures.h"
#include "results/compare/contrast.h"
#include "results/compare/groups.h"
#include "study/config.h"

namespace ucas {

struct TableOptions {
  std::string title, command;     // head of the document; the command that makes it again
  std::string eval = "test";      // which evaluation: eval/NAME.json
  std::string reference;          // a row; "" = the first trained
  std::vector<Quantity> columns;  // scope "each": a column for each source; {} = what the evaluation has
  std::vector<Quantity> compare;  // {} = greedy and mean@n
  bool each_seed = false;         // every run a row of the document too
  CompareOptions statistics;
  std::vector<StudyGate> gates;
  StudyDecision decide;
};
// What a study file asks for. `words`: what `ucas study` was called with.
TableOptions table_options(const Study& study, const Words& words);

// Of a training, by its steps: steps_to is the first step whose training accuracy (train/accuracy: right among all
// responses sampled in that step) is at least quantity.at; val_at the validation accuracy at the first validation from
// that step on; steps_to_val the first step whose validation accuracy is at least that. Unknown where it was never
// reached. Compares methods at equal accuracy, besides equal steps.
double training_value(const StepTable& steps, const Quantity& quantity);

struct StudyCell {
  std::vector<double> values;                    // in order of the row's runs; unknown where a run has none
  std::vector<bool> censored;                    // where the run never got there: the value is a lower bound
  double mean = kUnknown, deviation = kUnknown;  // over the known; a lower bound where a value is one
  size_t known() const;
  size_t never() const;  // censored values
};
struct StudyRow {
  std::string name, title;  // in the study ("" outside of one), for people
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
  std::vector<Quantity> columns, compare;  // each source by itself
  std::vector<StudyRow> rows;
  std::string reference;
  std::vector<GateResult> gates;
  std::vector<PlaceboContrasts> placebos;  // of the decision; a family of Holm's correction of their own
  std::string decision;                    // "" where none was asked for
  int64_t look = 0, complete_seeds = 0;    // of the decision: seeds that count; those that all its rows have
  // Of Holm's correction: the compared columns of the decision's row, of the other trained rows, of untrained ones.
  int64_t decided = 0, trained = 0, untrained = 0;
  bool tested() const { return options.decide.looks.empty() || look > 0; }  // a decision tests nothing before a look
  // By its name or title; how many rows there are if none is called so.
  size_t row_called(const std::string& name) const;
  // What a deviation is over: "4 seeds", "3 bases", "4 bases and seeds"; "" if every row has one run.
  std::string deviation_over() const;
};

// The directories of a study's runs below `home`, OUT/runs or what was kept of it, in the order of the rows.
std::vector<std::string> runs_below(const std::string& home, const Study& study);

// `runs`: run directories in the order of the rows.
StudyTable study_table(const std::vector<std::string>& runs, const TableOptions& options);

std::string table_markdown(const StudyTable& table);
std::string table_text(const StudyTable& table);  // for a terminal
// What the decision's row is above the reference and the placebos, in percentage points; `svg` is "" without a
// decision.
StudyFigure decision_figure(const StudyTable& table);

}  // namespace ucas

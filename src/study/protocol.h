// What a study says before its runs are made: conditions under which it can say anything (gates), and when a difference
// counts as help. Pure functions; the figures come from the study's table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "results/compare/answers.h"

namespace ucas {

struct StudyTable;

// [gate.NAME]: a cell of the table, its difference from another cell or its ratio to it, against a bound or two. The
// rows are rows of the study or "base".
struct StudyGate {
  std::string row, than_row;        // than_row "" with than_column: the same row
  std::string column, than_column;  // than_column "" with than_row: the same column
  bool ratio = false;
  double at_least = kUnknown, at_most = kUnknown;
  Quantity quantity, than_quantity;  // of the columns
  void fields(Fields& f);
  bool compares() const { return !than_row.empty() || !than_column.empty(); }
  bool of_base() const { return row == "base" && (than_row.empty() || than_row == "base"); }  // before any training
};

// The mean of a row in a quantity; unknown (NaN) where there is none.
using RowFigure = std::function<double(const std::string& row, const Quantity& quantity)>;
struct GateResult {
  std::string text;  // "base.mixed@16 >= 0.5: 0.412"
  double value = 0;
  bool held = false;  // false, too, where the value is unknown
};
std::vector<GateResult> check_gates(const std::vector<StudyGate>& gates, const RowFigure& figure);

// When a row helps against the reference, by the study's compared columns, all shares.
struct StudyDecision {
  std::string row;        // "" = no decision is asked for
  double helps_from = 0;  // the least difference that helps, where it is significant and its interval excludes 0
  double not_by = 0;      // it does not help by so much where the interval's upper end is below, in every column
  std::vector<std::string> placebos = {};  // rows that it must beat, too, in the column in which it helps
  double effect = 0;  // it has no effect of so much where the first column's interval is between -+ it; 0 = unasked
  std::vector<int64_t> looks = {};  // numbers of seeds at which is decided, by those of O'Brien and Fleming; {} = once
  void fields(Fields& f);
};
// "helps", "worse", "no effect of 1.0 points", "does not help by 3.3 points", "undecided", with the differences it
// follows from, those from the table's placebos, too. A row that is significantly below the reference in a share does
// not help. What is no share decides nothing; that it differs is said after the verdict.
std::string decide(const StudyTable& table);

}  // namespace ucas

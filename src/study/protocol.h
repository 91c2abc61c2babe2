// What a study says before its runs are made: conditions under which it can say anything (gates), and when a difference
// counts as help. Pure functions; the figures come from the study's table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

struct StudyTable;

// "base.mixed@16 >= 0.5", "dapo.entropy / base.entropy <= 0.5", "base.pass@64:macro - base.mean@16:macro >= 0.25":
// one figure of a row, or a difference or quotient of two, against a bound. ROW is a row of the study or base, the
// quantity one of its columns' kinds (compare/answers.h).
struct StudyGate {
  std::string text;
  struct Term {
    std::string row, quantity;
  };
  std::vector<Term> terms;  // one or two
  char operation = 0;       // '-', '/'; 0: one term
  bool at_least = true;
  double bound = 0;
  bool of_base() const;  // says something before anything is trained
};
// Error(ErrorKind::config) naming what may stand there.
StudyGate parse_gate(const std::string& text);

// The mean of a row in a quantity; unknown (NaN) where there is none.
using RowFigure = std::function<double(const std::string& row, const std::string& quantity)>;
struct GateResult {
  std::string text;
  double value = 0;
  bool held = false;  // false, too, where the value is unknown
};
std::vector<GateResult> check_gates(const std::vector<StudyGate>& gates, const RowFigure& figure);
// "base.mixed@16 >= 0.5: 0.412"
std::string gate_text(const GateResult& result);

// When a row helps against the reference, by the study's compared columns, all shares.
struct StudyDecision {
  std::string row;        // "" = no decision is asked for
  double helps_from = 0;  // the least difference that helps, where it is significant and its interval excludes 0
  double not_by = 0;      // it does not help by so much where the interval's upper end lies below, in every column
  std::vector<std::string> placebos = {};  // rows that it must beat, too: each significantly in one column at least
  void fields(Fields& f) {
    f.field("row", row, "row that the study decides about, against the reference; empty = none");
    f.field("helps_from", helps_from, Range{0, 1},
            "minimum significant difference of a share in one compared column for \"helps\"");
    f.field("not_by", not_by, Range{0, 1},
            "difference of a share that the intervals of all compared columns must lie below for \"does not help\"");
    f.field(
        "placebos", placebos,
        "rows compared with decide.row instead of the reference; \"helps\" needs a significant difference from each in "
        "one compared column at least");
  }
};
// "helps", "does not help by 3.3 points", "undecided", with the differences it follows from, those from the table's
// placebos, too. `title`: of the row.
std::string decide(const StudyTable& table, const std::string& title, const StudyDecision& decision);

}  // namespace ucas

#include "study/protocol.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "study/table.h"

namespace ucas {

void StudyGate::fields(Fields& f) {
  f.field("row", row, "row of the study, or base");
  f.field("column", column, "column of the table");
  f.field("than_row", than_row, "row to compare with; empty = the same row");
  f.field("than_column", than_column, "column to compare with; empty = the same column");
  f.field("ratio", ratio, "compare by ratio instead of difference");
  f.field("at_least", at_least, "lower bound; nan = none");
  f.field("at_most", at_most, "upper bound; nan = none");
}

void StudyDecision::fields(Fields& f) {
  f.field("row", row, "row that the study decides about, against the reference; empty = none");
  f.field("helps_from", helps_from, Range{0, 1},
          "minimum significant difference of a share in one compared column for \"helps\"");
  f.field("not_by", not_by, Range{0, 1},
          "difference of a share that the intervals of all compared columns must be below for \"does not help\"");
  f.field(
      "effect", effect, Range{0, 1},
      "difference of a share that the interval of the first compared column must be within, on both sides, for \"no "
      "effect\"; 0 = not asked");
  f.field("looks", looks, Range{2, 1000},
          "numbers of seeds to decide at, such as 8,16, at levels of O'Brien and Fleming; empty = once, at all seeds");
  f.field(
      "placebos", placebos,
      "rows compared with decide.row instead of the reference; \"helps\" needs a significant difference from each in "
      "the column that helps");
}

std::vector<GateResult> check_gates(const std::vector<StudyGate>& gates, const RowFigure& figure) {
  std::vector<GateResult> results;
  for (const StudyGate& gate : gates) {
    double value = figure(gate.row, gate.quantity);
    std::string text = str(gate.row, ".", gate.quantity.text());
    if (gate.compares()) {
      const std::string& row = gate.than_row.empty() ? gate.row : gate.than_row;
      const double other = figure(row, gate.than_quantity);
      value = gate.ratio ? value / other : value - other;
      text += str(gate.ratio ? " / " : " - ", row, ".", gate.than_quantity.text());
    }
    const std::string shown = std::isnan(value) ? "not known" : fixed(value, 3);
    if (!std::isnan(gate.at_least)) {
      results.push_back({str(text, " >= ", gate.at_least, ": ", shown), value, value >= gate.at_least});
    }
    if (!std::isnan(gate.at_most)) {
      results.push_back({str(text, " <= ", gate.at_most, ": ", shown), value, value <= gate.at_most});
    }
  }
  return results;
}

namespace {

std::string differences_text(const StudyTable& table, const std::vector<Contrast>& all) {
  std::string text;
  for (size_t c = 0; c < all.size(); ++c) {
    const Contrast& d = all[c];
    const bool share = table.compare[c].is_share();
    text += str(c == 0 ? "" : "; ", table.compare[c].text(), " ", change_text(d.change.value, share),
                d.change.bounded() ? str(" (", interval_text(d.change, share), ")") : "", ", ", p_texts(d));
  }
  return text;
}

// What is no share and differs: "entropy higher".
std::string asides(const StudyTable& table, const std::vector<Contrast>& against) {
  std::string text;
  for (size_t c = 0; c < against.size(); ++c) {
    if (table.compare[c].is_share() || !against[c].significant) continue;
    text += str(", ", table.compare[c].text(), against[c].change.value > 0 ? " higher" : " lower");
  }
  return text;
}

std::string verdict(const StudyTable& table, const std::vector<Contrast>& against) {
  const StudyDecision& decision = table.options.decide;
  std::vector<std::string> better, worse, unbeaten;
  bool below = true;
  for (size_t c = 0; c < against.size(); ++c) {
    const Contrast& d = against[c];
    const std::string column = table.compare[c].text();
    if (!table.compare[c].is_share()) continue;
    if (d.significant && d.change.high < 0) worse.push_back(column);
    below = below && d.change.bounded() && d.change.high < decision.not_by;
    if (!d.significant || d.change.value < decision.helps_from || !(d.change.low > 0)) continue;
    better.push_back(column);
    for (const PlaceboContrasts& placebo : table.placebos) {
      const Contrast& above = placebo.below[c];
      if (!above.significant || !(above.change.value > 0)) unbeaten.push_back(placebo.title);
    }
  }
  if (!better.empty() && !worse.empty()) {
    return str("undecided, as it is better in ", join(better, ", "), " and worse in ", join(worse, ", "));
  }
  if (!worse.empty()) return "worse";
  if (!better.empty() && !unbeaten.empty()) return str("undecided, as it does not beat ", join(unbeaten, ", "));
  if (!better.empty()) {
    return table.placebos.empty() ? "helps, if it also beats its placebos" : "helps";
  }
  const Figure& first = against[0].change;
  if (first.bounded() && std::max(-first.low, first.high) < decision.effect) {
    return str("no effect of ", number_text(decision.effect, true), " points in ", table.compare[0].text());
  }
  return below && decision.not_by > 0 ? str("does not help by ", number_text(decision.not_by, true), " points")
                                      : "undecided";
}

}  // namespace

std::string decide(const StudyTable& table) {
  const size_t row = table.row_called(table.options.decide.row);
  if (row == table.rows.size() || table.rows[row].against.empty()) return "undecided: the row was not compared";
  const std::vector<Contrast>& against = table.rows[row].against;
  const std::vector<int64_t>& looks = table.options.decide.looks;
  if (!looks.empty() && table.look == 0) {
    return str("undecided: ", table.complete_seeds, " of ", looks[0], " seeds for the first look");
  }
  const std::string at = looks.empty() ? "" : str(" at ", table.look, " of ", looks.back(), " seeds");
  std::string text = str(verdict(table, against), asides(table, against), at, ": ", differences_text(table, against));
  for (const PlaceboContrasts& placebo : table.placebos) {
    text += str("; above ", placebo.title, ": ", differences_text(table, placebo.below));
  }
  return text;
}

}  // namespace ucas

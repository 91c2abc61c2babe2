#include "study/protocol.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "compare/answers.h"
#include "study/table.h"

namespace ucas {

namespace {

[[noreturn]] void refuse_gate(const std::string& text) {
  throw Error(ErrorKind::config,
              str("gate \"", printable(text),
                  "\": expected ROW.QUANTITY, or two of them with - or / between, then >= or <= and a number, such as "
                  "\"base.mixed@16 >= 0.5\""));
}

// Row names may have dots (configs of a size), quantities only in a number: the quantity begins at a dot and a letter.
StudyGate::Term gate_term(const std::string& word, const std::string& text) {
  for (size_t dot = word.rfind('.'); dot != std::string::npos && dot > 0; dot = word.rfind('.', dot - 1)) {
    const bool letter = dot + 1 < word.size() && word[dot + 1] >= 'a' && word[dot + 1] <= 'z';
    if (!letter) continue;
    StudyGate::Term term{word.substr(0, dot), word.substr(dot + 1)};
    parse_quantity(term.quantity);
    return term;
  }
  refuse_gate(text);
}

double gate_value(const StudyGate& gate, const RowFigure& figure) {
  const double first = figure(gate.terms[0].row, gate.terms[0].quantity);
  if (gate.operation == 0) return first;
  const double second = figure(gate.terms[1].row, gate.terms[1].quantity);
  return gate.operation == '-' ? first - second : first / second;
}

}  // namespace

bool StudyGate::of_base() const {
  return std::ranges::all_of(terms, [](const Term& term) { return term.row == "base"; });
}

StudyGate parse_gate(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  if (words.size() != 3 && words.size() != 5) refuse_gate(text);
  StudyGate gate;
  gate.text = text;
  gate.terms.push_back(gate_term(words[0], text));
  if (words.size() == 5) {
    if (words[1] != "-" && words[1] != "/") refuse_gate(text);
    gate.operation = words[1][0];
    gate.terms.push_back(gate_term(words[2], text));
  }
  const std::string &compare = words[words.size() - 2], &number = words.back();
  if (compare != ">=" && compare != "<=") refuse_gate(text);
  gate.at_least = compare == ">=";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), gate.bound);
  if (error != std::errc() || end != number.data() + number.size()) refuse_gate(text);
  return gate;
}

std::vector<GateResult> check_gates(const std::vector<StudyGate>& gates, const RowFigure& figure) {
  std::vector<GateResult> results;
  for (const StudyGate& gate : gates) {
    const double value = gate_value(gate, figure);
    const bool held = gate.at_least ? value >= gate.bound : value <= gate.bound;
    results.push_back({gate.text, value, held});
  }
  return results;
}

std::string gate_text(const GateResult& result) {
  return str(result.text, ": ", std::isnan(result.value) ? "not known" : fixed(result.value, 3));
}

namespace {

std::string difference_text(const std::string& column, const Contrast& d) {
  return str(column, " ", change_text(d.change.value, true),
             d.change.bounded() ? str(" (", interval_text(d.change, true), ")") : "", ", ", p_texts(d));
}

bool is_beaten(const PlaceboContrasts& placebo) {
  return std::ranges::any_of(placebo.below, [](const Contrast& d) { return d.significant && d.change.value > 0; });
}

std::string help_text(const StudyTable& table) {
  if (table.placebos.empty()) return "helps, if it also beats its placebos";
  std::vector<std::string> others;
  for (const PlaceboContrasts& placebo : table.placebos) {
    if (!is_beaten(placebo)) others.push_back(placebo.title);
  }
  return others.empty() ? "helps" : str("undecided, as it does not beat ", join(others, ", "));
}

}  // namespace

std::string decide(const StudyTable& table, const std::string& title, const StudyDecision& decision) {
  const auto row = std::ranges::find(table.rows, title, &StudyRow::title);
  if (row == table.rows.end() || row->against.empty()) return "undecided: the row was not compared";
  bool helps = false, below = true;
  std::string differences;
  for (size_t c = 0; c < row->against.size(); ++c) {
    const Contrast& d = row->against[c];
    helps = helps || (d.significant && d.change.value >= decision.helps_from && d.change.low > 0);
    below = below && d.change.bounded() && d.change.high < decision.not_by;
    differences += str(c == 0 ? "" : "; ", difference_text(table.compare[c], d));
  }
  for (const PlaceboContrasts& placebo : table.placebos) {
    differences += str("; above ", placebo.title, ":");
    for (size_t c = 0; c < placebo.below.size(); ++c) {
      differences += str(c == 0 ? " " : "; ", difference_text(table.compare[c], placebo.below[c]));
    }
  }
  const std::string verdict = helps   ? help_text(table)
                              : below ? str("does not help by ", number_text(decision.not_by, true), " points")
                                      : "undecided";
  return str(verdict, ": ", differences);
}

}  // namespace ucas

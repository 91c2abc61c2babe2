// A study's table: Markdown, and text for a terminal.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/str.h"
#include "results/table.h"
#include "study/table.h"

namespace ucas {

namespace {

std::string heading(Quantity column) {
  const bool macro = column.scope == "macro";
  if (macro) column.scope.clear();
  return str(column.text(), macro ? ", macro" : "", column.is_share() ? " %" : "");
}

Cell shown(const StudyCell& found, bool share) {
  Cell cell = Cell::mean({found.mean, kUnknown, kUnknown}, found.deviation, share);
  const size_t never = found.never(), known = found.known() - never, all = found.values.size();
  if (never > 0) cell.before = ">= ";
  if (found.known() > 0 && known < all) cell.after = str(" (", known, " of ", all, ")");
  return cell;
}

std::string caption(const StudyTable& table) {
  std::string text = str(grouped(table.problems), " problems");
  if (table.samples > 0) text += str(", ", table.samples, " samples each");
  if (table.base_samples > table.samples) text += str(" (", grouped(table.base_samples), " from the base)");
  if (table.samples > 0 && !std::isnan(table.temperature)) text += str(" at temperature ", table.temperature);
  const std::string over = table.deviation_over();
  return text + (over.empty() ? "" : "; mean +- standard deviation over " + over);
}

Table main_table(const StudyTable& table) {
  Table out{{""}};
  for (const Quantity& column : table.columns) out.head.emplace_back(heading(column));
  for (const StudyRow& row : table.rows) {
    std::vector<Cell> cells = {row.title};
    for (size_t c = 0; c < row.cells.size(); ++c) cells.push_back(shown(row.cells[c], table.columns[c].is_share()));
    out.add(std::move(cells));
  }
  return out;
}

// What the rarer quantities are, where the table has them.
std::vector<std::string> column_notes(const StudyTable& table) {
  const auto has = [&](auto what) { return std::ranges::any_of(table.columns, what); };
  std::vector<std::string> notes;
  if (has([](const Quantity& q) { return q.of_training(); })) {
    notes.emplace_back(
        "steps_to@A: first step whose training accuracy is at least A; val_at@A: validation accuracy from there; "
        "steps_to_val@A: first step whose validation accuracy is at least A; (n of m) where n of m runs reached it. "
        "The others count as one step more than they were to take, so that the mean is a lower bound (>=); val_at@A is "
        "of those that reached it, \"-\" where none did.");
  }
  if (has([](const Quantity& q) { return q.name == "frontier"; })) {
    notes.emplace_back(
        "frontier@K: K samples solve a problem that n - K of the n samples of its base did not, mean over the ways to "
        "choose these. The base's own row is the control: the base asked again, by the K samples that are left. It is "
        "what a model that learned nothing gets.");
  }
  if (has([](const Quantity& q) { return q.name == "mixed"; })) {
    notes.emplace_back(
        "mixed@K: K samples of a problem are neither all right nor all wrong, mean over the ways to choose them.");
  }
  if (has([](const Quantity& q) { return q.name == "reached"; })) {
    notes.emplace_back("reached@A: share of runs whose greedy accuracy is at least A.");
  }
  return notes;
}

// "95 %", "99.5 %"
std::string level_text(double level) {
  return percent(level, std::fabs(100 * level - std::round(100 * level)) < 1e-9 ? 0 : 1);
}

std::string families_text(const StudyTable& table, double level) {
  std::vector<std::string> parts;
  if (table.decided > 0) {
    const StudyRow& row = table.rows[table.row_called(table.options.decide.row)];
    parts.push_back(str(many(table.decided, "comparison"), " of ", markdown_text(row.title)));
  }
  const char* others = table.decided > 0 ? " of the other trained rows" : " of trained rows";
  if (table.trained > 0) parts.push_back(str(many(table.trained, "comparison"), others));
  if (table.untrained > 0) parts.push_back(str(many(table.untrained, "comparison"), " of the untrained model"));
  if (parts.empty()) return "nothing was tested";
  return str("p corrected by Holm over the ", join(parts, ", apart from the "), ", level ", level_text(1 - level));
}

// Every row against the reference.
std::string comparison_table(const StudyTable& table) {
  const double level = table.options.statistics.level;
  Table out;
  out.head = {"", "", "difference", level_text(level) + " interval", "p", "corrected p", ""};
  std::string significant;
  bool one_run = true;
  for (const StudyRow& row : table.rows) {
    for (size_t c = 0; c < row.against.size(); ++c) {
      const Contrast& d = row.against[c];
      if (!d.known()) continue;
      const bool share = table.compare[c].is_share();
      const std::string change = change_text(d.change.value, share);
      const std::string bounds = d.change.bounded() ? interval_text(d.change, share) : "-";
      out.add({row.title, table.compare[c].text(), change, bounds, Cell::p(d.p), Cell::p(d.p_holm),
               std::isnan(d.p) && d.estimable ? "not tested" : words_of(d, level)});
      one_run = one_run && d.runs < 2;
      if (!row.trained || !d.significant) continue;
      significant +=
          str("- ", markdown_text(row.title), ", ", table.compare[c].text(), ": ", change, share ? " points" : "",
              " against ", markdown_text(table.reference), " (", p_texts(d), "; ", basis_text(d), ").\n");
    }
  }
  if (out.rows.empty()) return "";
  std::string text =
      str("\n## Against ", markdown_text(table.reference),
          "\n\nDifferences in percentage points (entropy: nats, length: tokens); ", families_text(table, level), ".\n",
          one_run ? "One run each: problems paired by source and id; the tests speak of these models, not of their "
                    "methods.\n\n"
                  : "Runs paired by base and seed, problems by source and id. Interval and p are of runs and problems "
                    "together: t over\nthe runs, and over the problems what these differ by beyond single answers.\n\n",
          out.markdown());
  if (!table.tested()) return str(text, "\nNothing is tested before ", table.options.decide.looks[0], " seeds.\n");
  return text + (significant.empty() ? "\nNo difference between trained rows is significant.\n"
                                     : "\nSignificant differences between trained rows:\n\n" + significant);
}

// What had to hold, and what follows.
std::string protocol_text(const StudyTable& table) {
  std::string text;
  bool all = true;
  for (const GateResult& gate : table.gates) {
    text += str("- ", gate.held ? "held" : "**failed**", ", ", markdown_text(gate.text), "\n");
    all = all && gate.held;
  }
  if (!text.empty()) {
    text = str("\n## Gates\n\n", text,
               all ? "" : "\nA gate failed: what the study asks about is not there, and nothing is concluded.\n");
  }
  if (table.decision.empty()) return text;
  const std::string decision =
      all ? table.decision : "undecided, as a gate failed; by the differences alone: " + table.decision;
  return text + str("\n## Decision\n\n", markdown_text(decision), "\n");
}

bool has_bases(const StudyTable& table) {
  return std::ranges::any_of(table.rows, [](const StudyRow& row) {
    return std::ranges::any_of(row.runs, [](const RunLabel& label) { return !label.base.empty(); });
  });
}

std::string seed_table(const StudyTable& table) {
  const bool bases = has_bases(table);
  Table out{bases ? std::vector<Cell>{"", "base", "seed"} : std::vector<Cell>{"", "seed"}};
  for (const Quantity& column : table.columns) out.head.emplace_back(heading(column));
  for (const StudyRow& row : table.rows) {
    for (size_t i = 0; i < row.runs.size(); ++i) {
      std::vector<Cell> cells = {row.title};
      if (bases) cells.emplace_back(row.runs[i].base.empty() ? "-" : printable(row.runs[i].base, 12));
      cells.emplace_back(row.trained ? str(row.runs[i].seed) : "-");
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const StudyCell& cell = row.cells[c];
        cells.push_back(Cell::value(cell.values[i], table.columns[c].is_share()));
        if (cell.censored[i]) cells.back().before = ">= ";
      }
      out.add(std::move(cells));
    }
  }
  return str("\n## Each run\n\n", out.markdown());
}

// Of the runs of a row: how much do bases differ (deviation of their means), how much seeds within one (root of the
// mean of their variances)? Unknown unless there are several of both.
struct TwoDeviations {
  double of_bases = kUnknown, of_seeds = kUnknown;
};

TwoDeviations two_deviations(const StudyRow& row, const StudyCell& cell) {
  std::map<std::string, std::vector<double>> by_base;
  for (size_t i = 0; i < row.runs.size(); ++i) {
    if (!std::isnan(cell.values[i])) by_base[row.runs[i].base].push_back(cell.values[i]);
  }
  std::vector<double> means, variances;
  for (const auto& [base, values] : by_base) {
    means.push_back(mean_of(values));
    const double deviation = deviation_of(values);
    if (!std::isnan(deviation)) variances.push_back(deviation * deviation);
  }
  if (variances.empty() || by_base.size() < 2) return {};
  return {deviation_of(means), std::sqrt(mean_of(variances))};
}

// Crossed bases and seeds: which deviation is which, for the compared columns.
std::string deviations_table(const StudyTable& table) {
  Table out;
  out.head = {"", "", "mean", "between bases", "between seeds of a base"};
  for (const StudyRow& row : table.rows) {
    for (size_t c = 0; c < row.cells.size(); ++c) {
      if (std::ranges::find(table.compare, table.columns[c]) == table.compare.end()) continue;
      const TwoDeviations found = two_deviations(row, row.cells[c]);
      if (std::isnan(found.of_bases)) continue;
      const bool share = table.columns[c].is_share();
      out.add({row.title, heading(table.columns[c]), Cell::value(row.cells[c].mean, share),
               Cell::value(found.of_bases, share), Cell::value(found.of_seeds, share)});
    }
  }
  return out.rows.empty() ? "" : str("\n## Deviations\n\n", out.markdown());
}

}  // namespace

std::string table_markdown(const StudyTable& table) {
  Table main = main_table(table);
  main.caption = str("# ", table.options.title, "\n\nMade by `", table.options.command, "`: ", caption(table), ".");
  main.notes = column_notes(table);
  std::string out = main.markdown() + deviations_table(table);
  if (table.options.each_seed) out += seed_table(table);
  return out + comparison_table(table) + protocol_text(table);
}

std::string table_text(const StudyTable& table) {
  Table main = main_table(table);
  main.caption = caption(table);
  return main.text();
}

}  // namespace ucas

// A forest plot of what a decision's row is above the reference and each placebo, with the seeds as dots.
#include <cmath>

#include "base/str.h"
#include "report/svg/svg_chart.h"
#include "study/table.h"

namespace ucas {

namespace {

// row less other, seed by seed, in percentage points; of the seeds that both have.
std::vector<double> by_seed(const StudyRow& row, const StudyRow& other, size_t column) {
  std::vector<double> out;
  for (size_t i = 0; i < row.runs.size(); ++i) {
    for (size_t j = 0; j < other.runs.size(); ++j) {
      const bool pair = row.runs[i].base == other.runs[j].base && row.runs[i].seed == other.runs[j].seed;
      const double change = 100 * (row.cells[column].values[i] - other.cells[column].values[j]);
      if (pair && !std::isnan(change)) out.push_back(change);
    }
  }
  return out;
}

}  // namespace

StudyFigure decision_figure(const StudyTable& table) {
  StudyFigure figure{.name = "decision", .title = "Decision", .note = table.decision, .svg = "", .csv = ""};
  if (table.options.decide.row.empty()) return figure;
  const StudyRow& row = table.rows[table.row_called(table.options.decide.row)];
  const auto name_of = [](const StudyRow& r) { return r.name.empty() ? r.title : r.name; };
  const std::string axis = str("percentage points; right of 0 ", name_of(row), " is better");
  BarChart chart{.title = str(row.title, ": differences"), .x = {.title = axis}, .points = true};
  Table numbers{{"outcome", "against", "difference", "low", "high", "runs"}};
  const auto add = [&](const std::string& other, const std::vector<Contrast>& contrasts, size_t color) {
    const size_t at = table.row_called(other);
    for (size_t c = 0; c < contrasts.size() && at < table.rows.size(); ++c) {
      const Figure& change = contrasts[c].change;
      const auto column = std::ranges::find(table.columns, table.compare[c]) - table.columns.begin();
      if (!table.compare[c].is_share() || !contrasts[c].known() || column == std::ssize(table.columns)) continue;
      const std::string outcome = table.compare[c].text();
      Bar bar{str(outcome.substr(0, outcome.find(':')), ", less ", name_of(table.rows[at])),
              change_text(change.value, true),
              "",
              color,
              100 * change.value,
              100 * change.low,
              100 * change.high,
              by_seed(row, table.rows[at], static_cast<size_t>(column)),
              !contrasts[c].significant};
      numbers.add({outcome, table.rows[at].title, Cell::value(change.value, true), Cell::value(change.low, true),
                   Cell::value(change.high, true), Cell::count(std::ssize(bar.each))});
      chart.bars.push_back(std::move(bar));
    }
  };
  add(table.reference, row.against, 1);
  for (const PlaceboContrasts& placebo : table.placebos) add(placebo.title, placebo.below, 2);
  if (!chart.bars.empty()) figure.svg = svg_of(chart), figure.csv = numbers.csv();
  return figure;
}

}  // namespace ucas

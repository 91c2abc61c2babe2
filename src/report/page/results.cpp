#include "report/page/template.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/str.h"
#include "core/metrics.h"
#include "report/escape.h"
#include "report/signs.h"
#include "report/study_figures.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

constexpr size_t kMostFindings = 6;  // sentences that are not folded away
constexpr double kShownLevel = 0.95;
constexpr const char* kOverSeeds =
    "Figures are mean \xc2\xb1 standard deviation over seeds; small figures below them: 95 % t interval of that mean "
    "over seeds. Differences of methods: runs paired by seed, problems by source and id; interval and p are of runs "
    "and problems together. ";
constexpr const char* kOverProblems =
    "Small print: 95 % interval over problems. Two runs are compared problem by problem: that covers the choice of "
    "problems, not the luck of training, for which it takes more seeds. ";

OrderedJson picture(const std::string& title, const std::string& metric, const std::string& note,
                    const BarChart& chart) {
  return {{"title", title}, {"metric", metric}, {"note", note}, {"svg", svg_for_page(svg_of(chart))}, {"numbers", ""}};
}

// The accuracy of each group between 0 and 100 %, its interval and its seeds.
OrderedJson accuracy_picture(const ResultTable& summary, size_t column) {
  const bool greedy = summary.columns[column].key == "greedy";
  BarChart chart;
  chart.title = greedy ? "Greedy accuracy" : "Sampled accuracy";
  chart.points = true;
  chart.x.percent = true;
  chart.x.low = 0;
  chart.x.high = 1;
  for (const SummaryRow& row : summary.rows) {
    const SummaryCell& cell = row.cells[column];
    if (cell.values.empty()) continue;
    Bar bar{
        row.group->title, number_text(cell.mean, true) + " %", "", row.group->color, cell.mean, kUnknown, kUnknown, {}};
    if (!std::isnan(cell.deviation)) bar.detail = "\xc2\xb1 " + number_text(cell.deviation, true);
    if (cell.interval.bounded()) bar.low = cell.interval.low, bar.high = cell.interval.high;
    if (cell.values.size() > 1) bar.each = cell.values;
    chart.bars.push_back(std::move(bar));
  }
  return picture(chart.title, greedy ? "pass@1" : summary.columns[column].title, "", chart);
}

// What separates the other groups from one: estimate, interval, corrected p.
OrderedJson forest_picture(const ResultTable& summary, const std::vector<RunGroup>& groups, size_t from) {
  BarChart chart;
  chart.title = "Differences from " + groups[from].title;
  chart.points = true;
  chart.x.title = "percentage points";
  for (const Difference& d : summary.differences) {
    if (d.from != from) continue;
    const Contrast& c = d.contrast;
    const std::string p = p_text(c.p_holm);
    Bar bar{str(groups[d.to].title, ", ", d.metric),
            change_text(c.change.value, true),
            p == "-" ? "not estimable" : str(p.starts_with('<') ? "p " : "p = ", p),
            groups[d.to].color,
            100 * c.change.value,
            100 * c.change.low,
            100 * c.change.high,
            {}};
    bar.hollow = !c.significant;
    chart.bars.push_back(std::move(bar));
  }
  return picture(chart.title, "", "Estimate, 95 % interval and corrected p; hollow marker: not significant.", chart);
}

OrderedJson pictures_of(const ResultTable& summary, const std::vector<RunGroup>& groups) {
  OrderedJson pictures = OrderedJson::array();
  for (size_t c = 0; c < summary.columns.size(); ++c) {
    const std::string& key = summary.columns[c].key;
    if (key == "greedy" || key.starts_with("mean@")) pictures.push_back(accuracy_picture(summary, c));
  }
  std::set<size_t> references;
  for (const Difference& d : summary.differences) references.insert(d.from);
  for (size_t from : references) pictures.push_back(forest_picture(summary, groups, from));
  const auto has_pass = [](const EvalRecord* e) { return !e->pass_at.empty(); };
  if (std::ranges::none_of(evaluations_of(groups, summary.data), has_pass)) return pictures;
  FigureRequest request;
  request.data = summary.data;
  for (const StudyFigure& figure : passk_figures({groups, request})) {
    pictures.push_back({{"title", figure.title},
                        {"metric", ""},
                        {"note", figure.note},
                        {"svg", svg_for_page(figure.svg)},
                        {"numbers", figure.csv}});
  }
  return pictures;
}

std::string asked_of(const ResultTable& summary) {
  std::string asked =
      str(short_path(summary.data, 1), summary.data.empty() ? "" : ": ", grouped(summary.problems), " problems");
  if (summary.samples > 0) {
    asked += str(", one greedy response and ", summary.samples, " samples each");
    if (!std::isnan(summary.temperature)) asked += str(" at temperature ", summary.temperature);
  }
  return asked + ".";
}

Cell column_head(const SummaryColumn& column) {
  const char* unit = column.share ? "%" : column.key == "length" ? "tokens" : column.key == "entropy" ? "nats" : "";
  return Cell(column.title).with(&Cell::about, column.help).with(&Cell::unit, unit);
}

std::string results_table(const ResultTable& summary) {
  Table table{.head = {""}, .kind = "summary"};
  for (const SummaryColumn& column : summary.columns) table.head.push_back(column_head(column));
  for (const SummaryRow& row : summary.rows) {
    Table::Row line{name_cell(*row.group, row.group->seeds())};
    line.begins = !table.rows.empty();
    for (size_t c = 0; c < row.cells.size(); ++c)
      line.cells.push_back(value_cell(row.cells[c], summary.columns[c].share, summary.columns[c].main));
    table.rows.push_back(std::move(line));
  }
  return render(table);
}

OrderedJson summary_values(const std::vector<RunGroup>& groups, const ResultTable& summary) {
  OrderedJson findings = OrderedJson::array();
  size_t significant = 0;
  for (const Difference& d : summary.differences) {
    const char* mark = !d.contrast.significant ? "level" : d.contrast.change.value > 0 ? "up" : "down";
    significant += d.contrast.significant;
    findings.push_back({{"mark", mark}, {"sentence", d.sentence}});
  }
  const bool several =
      std::ranges::any_of(summary.rows, [](const SummaryRow& row) { return row.group->runs.size() > 1; });
  std::string note = several ? kOverSeeds : kOverProblems;
  if (!summary.interval.empty()) note += str("Intervals of one run: ", summary.interval, ". ");
  note +=
      str("A difference is called higher or lower only if its interval excludes zero and its corrected p is at most "
          "0.05 (",
          family_text(summary.comparisons, kShownLevel), ").");
  const size_t all = summary.differences.size();
  std::string benchmarks;
  for (const Table& table : benchmark_tables(groups, summary.data)) benchmarks += render(table);
  return {
      {"asked", asked_of(summary)},
      {"pictures", pictures_of(summary, groups)},
      {"findings", findings},
      {"words",
       all == 0 ? "" : str(significant, " of ", all, all == 1 ? " difference is" : " differences are", " significant")},
      {"open", all <= kMostFindings},
      {"table", results_table(summary)},
      {"benchmarks", benchmarks},
      {"note", note}};
}

// Mean of the columns that fit at the steps where there is one.
KnownSteps known(const RunRecord& run, const char* pattern) { return series_of(run.steps, pattern); }

// Validation of each run: before the first step, at its best, at last; and how reward and length changed. "" where no
// run has validated.
std::string validation_table(const std::vector<RunGroup>& groups) {
  constexpr const char* kAccuracy = metric::val_accuracy.key;
  Table table{.head = {}, .kind = "summary"};
  for (const auto& [head, unit] : {std::pair{"validation", ""},
                                   {"before", "%"},
                                   {"best", "%"},
                                   {"last", "%"},
                                   {"reward", ""},
                                   {"length", "tokens"},
                                   {"time", ""}}) {
    table.head.push_back(Cell(head).with(&Cell::unit, unit));
  }
  const auto share_at = [](double value, double step) {
    return Cell::value(value, true).with(&Cell::below, str("step ", static_cast<int64_t>(step)));
  };
  const auto change = [](const KnownSteps& series, int digits) {
    if (series.size() == 0) return Cell::unknown();
    return Cell(str(fixed(series.value.front(), digits), " \xe2\x86\x92 ", fixed(series.value.back(), digits)));
  };
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      const KnownSteps accuracy = known(*run, kAccuracy);
      if (accuracy.size() == 0) continue;
      Table::Row row{{name_cell(group, group.runs.size() > 1 && run->seed >= 0 ? str("seed ", run->seed) : "")}};
      const bool before = accuracy.step.front() == 0;
      row.cells.push_back(before ? Cell::value(accuracy.value.front(), true) : Cell::unknown());
      const auto best = static_cast<size_t>(std::ranges::max_element(accuracy.value) - accuracy.value.begin());
      row.cells.push_back(share_at(accuracy.value[best], accuracy.step[best]));
      row.cells.push_back(share_at(accuracy.value.back(), accuracy.step.back()));
      row.cells.push_back(change(known(*run, metric::critic_score.mean.key), 3));
      row.cells.push_back(change(known(*run, metric::response_length.mean.key), 0));
      const KnownSteps seconds = known(*run, metric::timing_step.key);
      double all = 0;
      for (double value : seconds.value) all += value;
      row.cells.push_back(seconds.size() == 0 ? Cell::unknown() : human_seconds(all));
      table.rows.push_back(std::move(row));
    }
  }
  return table.rows.empty() ? "" : render(table);
}

}  // namespace

std::string results_html(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries) {
  OrderedJson tables = OrderedJson::array();
  for (const ResultTable& summary : summaries) tables.push_back(summary_values(groups, summary));
  return render("results.html", {{"tables", tables}, {"validation", validation_table(groups)}});
}

}  // namespace ucas

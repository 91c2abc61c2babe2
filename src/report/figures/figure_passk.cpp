// pass@k against k with intervals.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "report/study_figures.h"
#include "report/summary.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

std::set<int64_t> all_k(const FigureInput& in, const std::string& data) {
  std::set<int64_t> ks;
  for (const EvalRecord* e : evaluations_of(in.groups, data)) {
    for (const FigureAt& item : e->pass_at) ks.insert(item.k);
  }
  return ks;
}

int64_t problems_of(const FigureInput& in, const std::string& data, const std::string& source) {
  int64_t problems = 0;
  for (const EvalRecord* e : evaluations_of(in.groups, data)) {
    const EvalNumbers* numbers = numbers_of(*e, source);
    if (numbers) problems = std::max(problems, numbers->problems);
  }
  return problems;
}

bool equally_many(const FigureInput& in, const std::string& data, const std::vector<std::string>& sources) {
  const int64_t first = problems_of(in, data, sources[0]);
  return std::ranges::all_of(sources, [&](const auto& source) { return problems_of(in, data, source) == first; });
}

std::string problems_words(const FigureInput& in, const std::string& data, const std::string& source) {
  if (source.empty()) return data_words(in, data);
  return str(source, ", ", grouped(problems_of(in, data, source)), " problems");
}

StudyFigure figure_of(const FigureInput& in, const std::string& data, const std::string& source,
                      const std::set<int64_t>& ks) {
  Chart chart;
  chart.title = str("pass@k against k", source.empty() ? "" : ", " + source);
  chart.x.title = "k, samples a problem";
  chart.x.doubling = true;
  chart.y.title = "pass@k";
  chart.y.percent = true;
  StudyFigure figure;
  Table numbers{{"group", "k", "mean", "low", "high", "std", "runs"}}, table{{""}};
  for (int64_t k : ks) table.head.emplace_back(str("pass@", k, " %"));
  size_t most = 1;
  for (const RunGroup& group : in.groups) {
    ChartSeries s;
    s.name = group.title;
    s.color = group.color;
    s.dashed = dashed(group, in.groups);
    s.dots = true;
    s.band = in.groups.size() <= 4;
    std::vector<Cell> cells = {group.title};
    for (int64_t k : ks) {
      const SummaryCell found = measured(group, data, str("pass@", k), source);
      cells.push_back(found.shown(true));
      if (found.values.empty()) continue;
      most = std::max(most, found.values.size());
      const Figure& shown = found.interval;
      s.marks.push_back({static_cast<double>(k), shown.value, shown.low, shown.high,
                         str(group.title, ", pass@", k, " ", number_text(shown.value, true), " %")});
      numbers.add({group.title, Cell::count(k), Cell::value(shown.value, true), Cell::value(shown.low, true),
                   Cell::value(shown.high, true), Cell::value(found.deviation, true),
                   Cell::count(std::ssize(found.values))});
    }
    if (s.marks.empty()) continue;
    table.add(std::move(cells));
    chart.series.push_back(std::move(s));
  }
  figure.name = str("passk", source.empty() ? "" : "-" + file_word(source));
  figure.title = str("pass@k", source.empty() ? "" : ", " + source);
  figure.note = str("Unbiased pass@k on ", problems_words(in, data, source), ". Intervals, 95 %: ",
                    most > 1 ? "of the mean over seeds (Student's t); of groups with one run, over problems."
                             : "over problems, as the evaluation made them.");
  figure.table = table.markdown();
  figure.csv = numbers.csv();
  figure.svg = svg_of(chart);
  return figure;
}

}  // namespace

// One set of problems a figure: a curve over sets of different size and difficulty is that of the largest. Many sets of
// one size, the levels of a task, have one curve together unless they are asked for.
std::vector<StudyFigure> passk_figures(const FigureInput& in) {
  std::string data = asked_data(in);
  std::set<int64_t> ks = all_k(in, data);
  if (ks.empty()) throw Error(ErrorKind::empty, "no evaluation has pass@k (it needs evaluate.samples above 0)");
  std::vector<StudyFigure> figures;
  std::vector<std::string> sources = sources_of(in, data);
  if (in.request.sources.empty() && sources.size() > kMostSources && equally_many(in, data, sources)) sources = {""};
  for (const std::string& source : sources) figures.push_back(figure_of(in, data, source, ks));
  return figures;
}

}  // namespace ucas

// Training dynamics: validation accuracy, reward, length and entropy against the step.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/str.h"
#include "report/figures.h"
#include "report/series.h"
#include "report/svg_chart.h"

namespace ucas {

namespace {

struct Row {
  const char* key;
  const char* name;
  const char* title;
  const char* y;
  bool share;
};
constexpr Row kRows[] = {
    {"val-core/*/acc/mean@1", "accuracy", "Validation accuracy", "greedy accuracy", true},
    {"critic/score/mean", "reward", "Training reward", "mean score of a step", false},
    {"response_length/mean", "length", "Response length", "tokens", false},
    {"actor/entropy", "entropy", "Policy entropy", "nats a token", false},
};
constexpr size_t kMostPoints = 100, kMostBands = 4;

// Columns that the row means: one, or one for each source of the validation problems.
std::vector<std::string> columns(const std::vector<RunGroup>& groups, const std::string& key) {
  size_t star = key.find('*');
  if (star == std::string::npos) return {key};
  std::string before = key.substr(0, star), after = key.substr(star + 1);
  std::set<std::string> found;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      for (const auto& [name, values] : run->steps.column) {
        if (name.starts_with(before) && name.ends_with(after)) found.insert(name);
      }
    }
  }
  return {found.begin(), found.end()};
}

// Means over windows of consecutive steps, so that a long noisy run stays readable.
ChartSeries curve(const Series& series, const GroupSeries& own, size_t window) {
  ChartSeries out;
  for (size_t i = 0; i < series.x.size(); i += window) {
    size_t end = std::min(i + window, series.x.size());
    std::vector<double> x, over_runs;
    for (size_t j = i; j < end; ++j) x.push_back(series.x[j]);
    for (const std::vector<double>& run : own.runs) {
      std::vector<double> known;
      for (size_t j = i; j < end; ++j) {
        if (!std::isnan(run[j])) known.push_back(run[j]);
      }
      if (!known.empty()) over_runs.push_back(mean_of(known));
    }
    if (over_runs.empty()) continue;
    ChartMark mark{mean_of(x), mean_of(over_runs), kUnknown, kUnknown, ""};
    double deviation = deviation_of(over_runs);
    if (!std::isnan(deviation)) {
      mark.low = mark.y - deviation;
      mark.high = mark.y + deviation;
    }
    out.marks.push_back(mark);
  }
  return out;
}

std::string csv(const std::vector<RunGroup>& groups, const Series& series) {
  std::string out = "group,step,mean,std,min,max,runs\n";
  for (const GroupSeries& own : series.groups) {
    for (size_t i = 0; i < series.x.size(); ++i) {
      double low = kUnknown, high = kUnknown;
      size_t count = 0;
      for (const auto& run : own.runs) {
        if (std::isnan(run[i])) continue;
        low = std::isnan(low) ? run[i] : std::min(low, run[i]);
        high = std::isnan(high) ? run[i] : std::max(high, run[i]);
        ++count;
      }
      if (count == 0) continue;
      out += str(csv_text(groups[own.group].title), ",", series.x[i], ",", csv_number(own.mean[i]), ",",
                 csv_number(own.deviation[i]), ",", csv_number(low), ",", csv_number(high), ",", count, "\n");
    }
  }
  return out;
}

StudyFigure figure(const std::vector<RunGroup>& groups, const Row& row, const std::string& key, bool several) {
  Series series = series_of(groups, key, INT64_MAX);
  StudyFigure out;
  if (series.empty()) return out;
  std::string source;
  if (several) source = key.substr(9, key.find("/acc/") - 9);  // val-core/SOURCE/acc/...
  out.name = str("dynamics-", row.name, several ? "-" + file_word(source) : "");
  out.title = str(row.title, several ? ", " + source : "");
  size_t window = (series.x.size() + kMostPoints - 1) / kMostPoints, seeds = 1;
  bool bands = series.groups.size() <= kMostBands;
  Chart chart;
  chart.title = str(out.title, " against the step");
  chart.x.title = "training step";
  chart.y.title = row.y;
  chart.y.percent = row.share;
  for (const GroupSeries& own : series.groups) {
    ChartSeries s = curve(series, own, window);
    s.name = groups[own.group].title;
    s.color = groups[own.group].color;
    s.dashed = dashed(groups[own.group], groups);
    s.dots = s.marks.size() <= 12;
    for (ChartMark& m : s.marks) {
      if (!bands) m.low = m.high = kUnknown;
      if (row.share && !std::isnan(m.low)) m.low = std::max(0.0, m.low), m.high = std::min(1.0, m.high);
    }
    seeds = std::max(seeds, own.runs.size());
    chart.series.push_back(std::move(s));
  }
  out.svg = svg_of(chart);
  out.csv = csv(groups, series);
  if (seeds > 1) {
    out.note = str("Lines are means over up to ", seeds, " seeds",
                   bands ? ", bands one standard deviation to either side."
                         : "; with so many groups the bands are left to the table of numbers.");
  } else {
    out.note = "One run a group.";
  }
  if (window > 1) out.note += str(" Each point is the mean of ", window, " steps.");
  out.note += str(" Logged as ", key, ".");
  return out;
}

}  // namespace

std::vector<StudyFigure> dynamics_figures(const FigureInput& in) {
  std::vector<StudyFigure> figures;
  for (const Row& row : kRows) {
    std::vector<std::string> keys = columns(in.groups, row.key);
    for (const std::string& key : keys) {
      StudyFigure made = figure(in.groups, row, key, keys.size() > 1);
      if (!made.svg.empty()) figures.push_back(std::move(made));
    }
  }
  if (figures.empty()) in.lacking = "no run has steps.jsonl";
  return figures;
}

}  // namespace ucas

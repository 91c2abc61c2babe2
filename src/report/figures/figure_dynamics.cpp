// Training dynamics: validation accuracy, reward, length and entropy against the step.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "base/error.h"
#include "base/str.h"
#include "core/metrics.h"
#include "report/page/curves.h"
#include "report/study_figures.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

struct Row {
  const char* key;
  const char* name;
  const char* title;
  const char* y;
  double least, most;  // what it can be; its band ends there
  bool recovers;       // the paper says that it falls and rises again
};
constexpr Row kRows[] = {
    {metric::val_accuracy.key, "accuracy", "Validation accuracy", "greedy accuracy", 0, 1, false},
    {metric::critic_score.mean.key, "reward", "Training reward", "mean score of a step", -kNoBound, kNoBound, false},
    {metric::response_length.mean.key, "length", "Response length", "tokens", 0, kNoBound, false},
    {metric::actor_entropy.key, "entropy", "Policy entropy", "nats a token", 0, kNoBound, true},
};
constexpr size_t kMostPoints = 100, kMostBands = 4, kWindows = 20;

// Columns that the row means: one, or one for each source of the validation problems.
std::vector<std::string> columns(const std::vector<RunGroup>& groups, const std::string& key) {
  if (key.find('*') == std::string::npos) return {key};
  std::set<std::string> found;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      for (std::string& name : run->steps.fitting(key)) found.insert(std::move(name));
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
  Table table{{"group", "step", "mean", "std", "min", "max", "runs"}};
  const auto number = [](double value) { return Cell::value(value, false); };
  for (const GroupSeries& own : series.groups) {
    for (size_t i = 0; i < series.x.size(); ++i) {
      double low = kUnknown, high = kUnknown;
      int64_t count = 0;
      for (const auto& run : own.runs) {
        if (std::isnan(run[i])) continue;
        low = std::isnan(low) ? run[i] : std::min(low, run[i]);
        high = std::isnan(high) ? run[i] : std::max(high, run[i]);
        ++count;
      }
      if (count == 0) continue;
      table.add({groups[own.group].title, number(series.x[i]), number(own.mean[i]), number(own.deviation[i]),
                 number(low), number(high), Cell::count(count)});
    }
  }
  return table.csv();
}

// Means over about twenty windows of equal length, and where each window's middle is: one run's course without its
// noise.
struct WindowCourse {
  std::vector<double> step, value;
};

WindowCourse course_of(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> steps, values;
  for (size_t i = 0; i < y.size(); ++i) {
    if (std::isnan(y[i])) continue;
    steps.push_back(x[i]);
    values.push_back(y[i]);
  }
  const size_t windows = std::min(values.size(), kWindows);
  WindowCourse course;
  for (size_t w = 0; w < windows; ++w) {
    const size_t from = w * values.size() / windows, to = (w + 1) * values.size() / windows;
    course.step.push_back(mean_of(std::span(steps).subspan(from, to - from)));
    course.value.push_back(mean_of(std::span(values).subspan(from, to - from)));
  }
  return course;
}

// Does it fall, and does it recover? Start, minimum, its step and end of each group, a mean over its runs.
std::string fall_and_recovery(const std::vector<RunGroup>& groups, const Series& series) {
  Table table{{"", "start", "minimum", "at step", "end", "end less minimum", "window to window"}};
  for (const GroupSeries& own : series.groups) {
    std::vector<double> start, least, at, end, rise, noise;
    for (const std::vector<double>& run : own.runs) {
      const WindowCourse course = course_of(series.x, run);
      if (course.value.empty()) continue;
      const auto lowest = static_cast<size_t>(std::ranges::min_element(course.value) - course.value.begin());
      std::vector<double> moves;
      for (size_t i = course.value.size() / 2 + 1; i < course.value.size(); ++i) {
        moves.push_back(std::fabs(course.value[i] - course.value[i - 1]));
      }
      start.push_back(course.value.front());
      least.push_back(course.value[lowest]);
      at.push_back(std::round(course.step[lowest]));
      end.push_back(course.value.back());
      rise.push_back(end.back() - least.back());
      noise.push_back(mean_of(moves));
    }
    std::vector<Cell> cells = {groups[own.group].title};
    for (const auto* values : {&start, &least, &at, &end, &rise, &noise}) cells.push_back(spread_cell(*values, false));
    table.add(std::move(cells));
  }
  return str(
      table.markdown(), "\nOver means of at most ", kWindows,
      " windows of equal length. The lowest of them lies below the end by chance, too: a recovery is a rise well "
      "above what the second half moves from window to window.\n");
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
  bool distinct = true;
  bool bands = series.groups.size() <= kMostBands;
  Chart chart;
  chart.title = str(out.title, " against the step");
  chart.x.title = "training step";
  chart.y.title = row.y;
  chart.y.percent = row.most == 1;
  for (const GroupSeries& own : series.groups) {
    ChartSeries s = curve(series, own, window);
    s.name = groups[own.group].title;
    s.color = groups[own.group].color;
    s.dashed = dashed(groups[own.group], groups);
    s.dots = s.marks.size() <= 12;
    for (ChartMark& m : s.marks) {
      if (!bands) m.low = m.high = kUnknown;
      if (!std::isnan(m.low)) m.low = std::max(row.least, m.low), m.high = std::min(row.most, m.high);
    }
    seeds = std::max(seeds, own.runs.size());
    distinct = distinct && groups[own.group].seeds().starts_with("seed");
    chart.series.push_back(std::move(s));
  }
  out.svg = svg_of(chart);
  out.csv = csv(groups, series);
  if (seeds > 1) {
    out.note = str("Lines are means over up to ", seeds, distinct ? " seeds" : " runs",
                   bands ? ", bands one standard deviation to either side."
                         : "; with so many groups the bands are left to the table of numbers.");
  } else {
    out.note = "One run a group.";
  }
  if (window > 1) out.note += str(" Each point is the mean of ", window, " steps.");
  out.note += str(" Logged as ", key, ".");
  if (row.recovers) out.table = fall_and_recovery(groups, series);
  return out;
}

}  // namespace

std::vector<StudyFigure> dynamics_figures(const FigureInput& in) {
  std::vector<StudyFigure> figures;
  for (const Row& row : kRows) {
    std::vector<std::string> keys = columns(in.groups, row.key);
    if (keys.size() > kMostSources) keys = {row.key};
    for (const std::string& key : keys) {
      StudyFigure made = figure(in.groups, row, key, keys.size() > 1);
      if (!made.svg.empty()) figures.push_back(std::move(made));
    }
  }
  if (figures.empty()) throw Error(ErrorKind::empty, "no run has steps.jsonl");
  return figures;
}

}  // namespace ucas

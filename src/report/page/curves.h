// The charts of a report: the place of each logged number; one row a panel. Titles and captions are those of
// core/metrics.h. Plotted by report/svg, each with its table. Numbers outside the common names (a method's own
// diagnostics) get panels of their own; a number that never changed gets a few words instead of a chart.
#pragma once

#include <string>
#include <vector>

#include "results/compare/groups.h"
#include "results/stats/spread.h"

namespace ucas {

// One number over steps for every group of runs: the curves that the page draws. Mean and standard deviation are over
// the runs of a group (seeds) that have the number at that step.

struct GroupSeries {
  size_t group = 0;                       // index of the group
  std::vector<double> mean, deviation;    // [X]; unknown where no run (or only one, for the deviation) has a value
  std::vector<std::vector<double>> runs;  // [R][X]
};

struct Series {
  std::vector<double> x;            // [X] ascending: the steps at which any run has the number
  std::vector<GroupSeries> groups;  // those that have the number at all
  int64_t stride = 1;               // > 1: only every stride-th step was kept, and the last
  bool empty() const { return groups.empty(); }
};

// `key` is a column of steps.jsonl, with a * the mean over all that fit. At most `points` steps are kept.
Series series_of(const std::vector<RunGroup>& groups, const std::string& key, int64_t points);
struct CurvesPage {
  std::string html;    // "" if there is nothing to plot
  int64_t stride = 1;  // > 1: only every stride-th step of the longest runs is plotted
};
// `budget` bytes decide how many steps are kept.
CurvesPage curves_page(const std::vector<RunGroup>& groups, int64_t budget);

}  // namespace ucas

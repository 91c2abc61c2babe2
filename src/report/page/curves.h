// The charts of a report: which logged number stands where; one row a panel. Titles and captions are those of
// core/metrics.h. Drawn by report/svg, each with its table. Numbers outside the common names (a method's own
// diagnostics) get panels of their own; a number that never changed gets a few words instead of a chart.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compare/groups.h"
#include "report/summary.h"

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
// The loss of the SFT phase, from sft.jsonl.
Series sft_series(const std::vector<RunGroup>& groups, int64_t points);

enum class Axis { step, samples };  // samples: k of pass@k, drawn on a doubling scale

struct Panel {
  std::string section, key, title, help;
  bool share = false;
  Axis axis = Axis::step;
  std::string x_name = "step";
  Series series;
  std::vector<std::vector<Figure>> bounds;  // per group of series: bounds at each x, if they are not mean +- std
};

// All panels that have data, in reading order. `budget` bytes for the numbers decide how many steps are kept.
std::vector<Panel> make_panels(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries,
                               int64_t budget);

struct CurvesPage {
  std::string html;    // "" if there is nothing to draw
  int64_t stride = 1;  // > 1: only every stride-th step of the longest runs is drawn
};
CurvesPage curves_page(const std::vector<RunGroup>& groups, const std::vector<Panel>& panels);

}  // namespace ucas

// The charts of a report: which logged number stands where, under which title, with which words. One row a panel.
// Numbers outside the common names (a method's own diagnostics) get panels of their own, under the method's prefix.
// Threads: any.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/series.h"
#include "report/summary.h"

namespace ucas {

struct PanelRow {
  const char* section;
  const char* key;  // column of steps.jsonl; "val-core/*/acc/mean@1": one panel a source
  const char* title;
  const char* help;    // one line under the title
  bool share = false;  // printed in percent
};
std::span<const PanelRow> panel_rows();
// One line about a method's own number, or "" for one that is not known here.
std::string diagnostic_help(const std::string& key);

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

// What report.js reads: {"groups": [...], "panels": [...]}.
std::string panels_json(const std::vector<RunGroup>& groups, const std::vector<Panel>& panels);

}  // namespace ucas

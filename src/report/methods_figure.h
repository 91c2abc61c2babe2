// One step under every method, as a table and as a figure: for `ucas advantages --table`, its page, and the report.
// report/figures/figure_methods.cpp draws it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/study_figures.h"
#include "results/table.h"

namespace ucas {

// Over all tokens of the steps; a DAPO's, b the method's.
struct AgainstDapo {
  std::string name, variant;             // "ucas", "placebo permuted_confidence"
  double correlation = 0;                // of a and b; NaN if either is constant
  double size = 0;                       // mean |b| over mean |a|
  double net = 0;                        // mean b
  int64_t tokens = 0, turned = 0;        // a b < 0
  int64_t silenced = 0, woken = 0;       // b = 0 only; a = 0 only
  int64_t rare = 0, rare_lowered = 0;    // rare right responses, and those whose mean b is below their mean a
  int64_t other = 0, other_lowered = 0;  // the other right responses of groups with a difference
};

struct MethodsTable {
  int64_t steps = 0, groups = 0, responses = 0;
  double rare = 0;                    // a right response is rare where at most this share of its group is right
  std::vector<AgainstDapo> rows;      // DAPO first
  std::vector<std::string> left_out;  // "ppo: the values of a critic (..)"
};

Table methods_rows(const MethodsTable& table);
// "12 saved steps, 48 prompts, 384 responses, 5,120 tokens"
std::string methods_extent(const MethodsTable& table);
StudyFigure methods_figure(const MethodsTable& table);
// A document of its own: what was compared, the figure FIGURE.svg, the table, what is left out. `command` makes it.
std::string methods_page(const MethodsTable& table, const std::string& figure, const std::string& command);

}  // namespace ucas

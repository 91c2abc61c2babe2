// One step under every method, as a table and as a figure: for `ucas advantages --table`, its page, and the report.
// report/figures/figure_methods.cpp draws it.
#pragma once

#include <string>

#include "records/run/step_methods.h"
#include "report/study_figures.h"
#include "results/table.h"

namespace ucas {

Table methods_rows(const MethodsTable& table);
// "12 saved steps, 48 prompts, 384 responses, 5,120 tokens"
std::string methods_extent(const MethodsTable& table);
StudyFigure methods_figure(const MethodsTable& table);
// A document of its own: what was compared, the figure FIGURE.svg, the table, what is left out. `command` makes it.
std::string methods_page(const MethodsTable& table, const std::string& figure, const std::string& command);

}  // namespace ucas

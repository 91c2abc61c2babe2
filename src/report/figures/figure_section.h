// Drawn figures of the report: the SVGs of report/study_figures.h inside the page, each with its numbers.
#pragma once

#include <string>
#include <vector>

#include "compare/groups.h"

namespace ucas {

// HTML; "" if there is nothing to draw. Curves against the step are not among them: the page draws those itself.
std::string figures_html(const std::vector<RunGroup>& groups);

// One step under every method, of each run that has the table (records/run/step_methods.h): figure and table; "" where
// none has. What cannot be read is said in its place.
std::string methods_html(const std::vector<RunGroup>& groups);

}  // namespace ucas

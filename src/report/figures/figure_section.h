// Drawn figures of the report: the SVGs of report/study_figures.h inside the page, each with its numbers.
#pragma once

#include <string>
#include <vector>

#include "compare/groups.h"

namespace ucas {

// HTML; "" if there is nothing to draw. Curves against the step are not among them: the page draws those itself.
std::string figures_html(const std::vector<RunGroup>& groups);

}  // namespace ucas

// Cells that the tables of the page share; where the time went, and the settings, as HTML ("" when there is nothing to
// show).
#pragma once

#include <string>
#include <vector>

#include "report/page/template.h"
#include "report/summary.h"

namespace ucas {

PageCell name_cell(const RunGroup& group, const std::string& bounds = "");  // with its colour
// Mean and spread; where wanted, the interval below.
PageCell value_cell(const SummaryCell& value, bool share, bool with_interval);
std::string bounds_text(const Figure& interval);  // of a share, in percent: "81.7-84.3"; "" without bounds

std::string time_html(const std::vector<RunGroup>& groups);
std::string settings_html(const std::vector<RunGroup>& groups);

}  // namespace ucas

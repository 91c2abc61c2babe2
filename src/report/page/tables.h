// Cells that the tables of the page share; where the time went, and the settings, as HTML ("" when there is nothing to
// show).
#pragma once

#include <string>
#include <vector>

#include "report/page/template.h"
#include "report/summary.h"

namespace ucas {

Cell name_cell(const RunGroup& group, const std::string& below = "");  // with its colour
// Mean and spread; where wanted, the interval below.
Cell value_cell(const SummaryCell& value, bool share, bool with_interval);

std::string time_html(const std::vector<RunGroup>& groups);
std::string settings_html(const std::vector<RunGroup>& groups);

}  // namespace ucas

// The tables of the page that need no script: the summary, its picture, where the time went, the settings.
// Threads: any; each returns HTML, "" when there is nothing to show.
#pragma once

#include <string>
#include <vector>

#include "report/summary.h"

namespace ucas {

std::string color_key(const RunGroup& group);  // the coloured mark before a group's name
std::string summary_picture_html(const ResultTable& summary);
std::string summary_table_html(const ResultTable& summary);
std::string time_html(const std::vector<RunGroup>& groups);
std::string settings_html(const std::vector<RunGroup>& groups);

}  // namespace ucas

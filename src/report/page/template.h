// HTML from the templates of report/assets (Mustache): {{x}} is text and is escaped (report/escape.h), {{{x}}} is HTML
// that was made safe before. A value is never read as a template. Threads: any; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "report/summary.h"
#include "results/table.h"

namespace ucas {

std::string_view asset(const std::string& name);  // a file of report/assets

// "results.html" and its values. Empty texts, null and false make their section {{#x}} vanish; {{> y.html}} is the
// template y in the same place.
std::string render(const std::string& name, const OrderedJson& values);

// A table of results as HTML: the first cell of each row names it. An unknown number is a dash.
std::string render(const Table& table);

// Cells that the tables of the page share, and the settings as HTML ("" when there is nothing to show).

Cell name_cell(const RunGroup& group, const std::string& below = "");  // with its colour
// Mean and spread; where wanted, the interval below.
Cell value_cell(const SummaryCell& value, bool share, bool with_interval);

std::string settings_html(const std::vector<RunGroup>& groups);

// Sections of the page.

// Accuracies, differences between groups as a forest plot and in words, the table: the numbers of summary.h.
std::string results_html(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries);

// Responses to read: for a few problems the answers of every group side by side; from training, those of the first and
// the last stored step with their rewards and advantages. "" if no run has responses.
std::string responses_html(const std::vector<RunGroup>& groups);

}  // namespace ucas

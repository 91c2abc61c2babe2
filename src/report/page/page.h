// The page of a report, put together from its sections (results, responses, curves, explorer ...). All text is escaped
// (report/escape.h) and cut, so that a report stays small.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/summary.h"

namespace ucas {

// An empty title is made from the runs.
std::string page_html(const std::vector<RunRecord>& runs, const std::string& title);

// Accuracies, differences between groups as a forest plot and in words, the table: the numbers of summary.h.
std::string results_html(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries);

// Responses to read: for a few problems the answers of every group side by side; from training, those of the first and
// the last stored step with their rewards and advantages. "" if no run has responses.
std::string responses_html(const std::vector<RunGroup>& groups);

}  // namespace ucas

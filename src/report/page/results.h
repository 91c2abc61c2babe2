// The results of the page: accuracies, differences between groups as a forest plot and in words, the table. All from
// summary.h, which has the numbers.
#pragma once

#include <string>
#include <vector>

#include "report/summary.h"

namespace ucas {

std::string results_html(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries);

}  // namespace ucas

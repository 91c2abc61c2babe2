// The result table as files: Markdown for documents, CSV for spreadsheets, LaTeX for papers. Mean and standard
// deviation over seeds, and the sentences of report/summary.h. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace ucas {

// `runs` are run directories. `command` is the one that makes the table again.
std::string results_markdown(const std::vector<std::string>& runs, const std::string& title,
                             const std::string& command);
std::string results_csv(const std::vector<std::string>& runs);  // a line per row and column: mean, std, seeds, interval
std::string results_tex(const std::vector<std::string>& runs);  // tabular with booktabs rules

}  // namespace ucas

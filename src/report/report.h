// Turns run directories (RunRecord) into one self-contained HTML file. It opens offline, asks the network for nothing,
// and holds its own style, script and numbers. Everything in it comes from the run directories (docs/formats.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ucas {

// Throws Error if a run cannot be read; nothing is written then. An empty title is made from the runs.
size_t write_report(const std::vector<std::string>& runs, const std::string& out_file, const std::string& title);

// The page itself, of at most 10 MB: texts are cut, and what is shown of many is a few.
std::string report_html(const std::vector<std::string>& runs, const std::string& title);

}  // namespace ucas

// Turns run directories (RunRecord) into one self-contained HTML file. It opens offline, asks the network for nothing,
// and holds its own style, script and numbers. Everything in it comes from the run directories (docs/formats.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ucas {

// Throws Error if a run cannot be read; nothing is written then. An empty title is made from the runs.
size_t write_report(const std::vector<std::string>& runs, const std::string& out_file, const std::string& title);

// The page itself. Shown responses are cut and thinned out until it has at most `largest` bytes.
std::string report_html(const std::vector<std::string>& runs, const std::string& title, size_t largest = 10 << 20);

}  // namespace ucas

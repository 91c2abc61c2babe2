// RunRecord directories in, one self-contained HTML file out: it opens offline, asks the network for nothing, and holds
// its own style, script and numbers. Everything in it comes from the run directories (docs/formats.md). Threads: any.
#pragma once

#include <string>
#include <vector>

namespace ucas {

// Throws Error if a run cannot be read; nothing is written then. An empty title is made from the runs.
void write_report(const std::vector<std::string>& runs, const std::string& out_file, const std::string& title);

// The page itself.
std::string report_html(const std::vector<std::string>& runs, const std::string& title);

}  // namespace ucas

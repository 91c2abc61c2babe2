#include "report/report.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "report/page/page.h"

namespace ucas {

std::string report_html(const std::vector<std::string>& paths, const std::string& title, size_t largest) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  SampleLimits limits;
  Page page(runs, title);
  while (true) {
    std::string html = page.html(limits);
    if (html.size() <= largest || limits.bytes < 200) return html;
    limits.token_bytes /= 2;
    limits.bytes /= 2;
    limits.problems = std::max<size_t>(2, limits.problems * 2 / 3);
    limits.responses = std::min<size_t>(limits.responses, 1);
  }
}

size_t write_report(const std::vector<std::string>& runs, const std::string& out_file, const std::string& title) {
  if (runs.empty()) throw Error(ErrorKind::usage, "no run directory given, expected at least one");
  const std::string html = report_html(runs, title);
  write_output(out_file, html);
  return html.size();
}

}  // namespace ucas

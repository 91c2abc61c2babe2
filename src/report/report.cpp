#include "report/report.h"

#include "base/error.h"
#include "base/files/file.h"
#include "report/page/page.h"

namespace ucas {

std::string report_html(const std::vector<std::string>& paths, const std::string& title) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  return page_html(runs, title);
}

size_t write_report(const std::vector<std::string>& runs, const std::string& out_file, const std::string& title) {
  if (runs.empty()) throw Error(ErrorKind::usage, "no run directory given, expected at least one");
  const std::string html = report_html(runs, title);
  write_output(out_file, html);
  return html.size();
}

}  // namespace ucas

// `ucas report`: run directories -> one HTML file.
#include "report/report.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/terminal/terminal.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "report/summary.h"

namespace ucas {

namespace {

struct ReportOptions {
  std::string out = "report.html";
  std::string title;
  bool text = false;
  void fields(Fields& f) {
    f.field("out", out, "HTML file to write (also -o FILE)");
    f.field("title", title, "heading of the page; empty = made from the runs");
    f.field("text", text, "print only the summary table, write no page");
  }
};

}  // namespace

std::string options_report() { return options_help(ReportOptions{}); }

int run_report(const Words& words) {
  CommandLine line = parse_command_line(words, {"text"});
  ReportOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.empty()) {
    throw Error(ErrorKind::usage, "report: no run directory given, expected ucas report RUN... -o FILE.html");
  }
  const size_t size = options.text ? 0 : write_report(line.positionals, options.out, options.title);
  out(summary_table(line.positionals, output_width()));
  if (!options.text) log(str("report: ", options.out, ", ", human_bytes(static_cast<double>(size))));
  return kDone;
}

}  // namespace ucas

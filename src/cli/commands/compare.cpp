// `ucas compare`: runs side by side, problem by problem -> tables, and which differences are significant.
#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "evaluate/results/published.h"
#include "evaluate/results/table.h"
#include "results/compare/answers.h"
#include "results/compare/models.h"

namespace ucas {

namespace {

struct CompareLine {
  std::string data;
  std::vector<std::string> published;
  std::vector<int64_t> ks;
  void fields(Fields& f) {
    f.field("data", data,
            "evaluation to compare, by the name in eval/NAME.json; needed only where the runs share several");
    f.field("ks", ks, Range{1, 1 << 16}, "values k of pass@k; empty = 4, 16, 64, up to the number of samples");
    f.field("published", published,
            "published figures as marked rows: ucas, or a .toml file (keys as in published/ucas.toml)");
  }
};

}  // namespace

std::string options_compare() { return options_help(CompareLine{}); }

int run_compare(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  CompareLine options;
  ucas::apply(options, line.settings);
  if (line.positionals.empty()) {
    throw Error(ErrorKind::usage, "compare: no run directory given, expected ucas compare RUN...");
  }
  std::vector<PublishedTable> published;
  for (const std::string& name : options.published) published.push_back(load_published(name));
  const std::vector<AnswerGroup> groups = compared_groups(line.positionals, options.data);
  out(comparison_text(compare_models(groups, {{}, options.ks}), published));
  return kDone;
}

}  // namespace ucas

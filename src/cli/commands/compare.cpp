// `ucas compare`: runs side by side, problem by problem -> tables, and which differences are significant.
#include "cli/commands/compare.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "compare/models.h"
#include "compare/run_answers.h"
#include "evaluate/results/published.h"
#include "evaluate/results/table.h"
#include "report/report.h"

namespace ucas {

namespace {

struct CompareLine {
  std::string data, out;
  std::vector<std::string> published;
  std::vector<int64_t> ks;
  bool json = false;
  int64_t draws = 10000, seed = 0;
  double level = 0.95;
  void fields(Fields& f) {
    f.field("data", data,
            "evaluation to compare, by the name in eval/NAME.json; needed only where the runs share several");
    f.field("ks", ks, Range{1, 1 << 16}, "values k of pass@k; empty = 4, 16, 64, up to the number of samples");
    f.field("published", published,
            "published figures as marked rows: ucas, or a .toml file (keys as in published/ucas.toml)");
    f.field("out", out, "HTML file to write the report of all compared runs to (also -o FILE); empty = none");
    f.field("json", json, "print JSON instead of text");
    f.field("level", level, Range{0.5, 0.9999}, "confidence level of intervals and tests");
    f.field("draws", draws, Range{100, 1e6}, "resamples behind bootstrap intervals and sign-flip tests");
    f.field("seed", seed, Range{0, 9e15}, "random seed of the resamples");
  }
};

std::set<std::string> evaluations_of(const RunRecord& run) {
  std::set<std::string> names;
  for (const EvalRecord& evaluation : run.evaluations) {
    if (!evaluation.rows.empty()) names.insert(evaluation.name);
  }
  return names;
}

}  // namespace

std::string choose_evaluation(const std::vector<RunRecord>& runs, const std::string& asked) {
  std::set<std::string> common = evaluations_of(runs[0]);
  for (const RunRecord& run : runs) {
    const std::set<std::string> names = evaluations_of(run);
    if (names.empty()) {
      throw Error(ErrorKind::empty, str(run.path,
                                        ": no evaluation with answers per problem (eval/NAME.json and NAME.jsonl); "
                                        "`ucas evaluate` makes one of a checkpoint, in a directory for each model"));
    }
    if (!asked.empty() && !names.contains(asked)) {
      throw Error(ErrorKind::path, str(run.path, ": no evaluation \"", printable(asked), "\"; there is ",
                                       join({names.begin(), names.end()}, ", ")));
    }
    std::erase_if(common, [&](const std::string& name) { return !names.contains(name); });
  }
  if (!asked.empty()) return asked;
  if (common.empty())
    throw Error(ErrorKind::empty, "the runs share no evaluation by name; --data NAME compares one that all have");
  // Validations of a training have steps for names; what is compared is what was evaluated at its end.
  std::vector<std::string> named;
  std::copy_if(common.begin(), common.end(), std::back_inserter(named),
               [](const std::string& name) { return !name.starts_with("step-"); });
  if (named.empty()) named = {*common.rbegin()};
  if (named.size() > 1) {
    throw Error(ErrorKind::config, str(runs.size() == 1 ? str(runs[0].path, ": several evaluations: ")
                                                        : "the runs share several evaluations: ",
                                       join(named, ", "), "; choose one with --data NAME"));
  }
  return named[0];
}

std::vector<AnswerGroup> compared_groups(const std::vector<std::string>& paths, const std::string& asked) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  const std::string name = choose_evaluation(runs, asked);
  // The groups keep the order of the command line: the first run is the one that others are held against.
  const std::vector<RunGroup> grouped_runs = group_runs(runs);
  std::vector<const RunGroup*> order;
  for (const RunGroup& group : grouped_runs) order.push_back(&group);
  const auto first = [](const RunGroup* group) { return *std::min_element(group->runs.begin(), group->runs.end()); };
  std::sort(order.begin(), order.end(), [&](const RunGroup* a, const RunGroup* b) { return first(a) < first(b); });
  const auto choose = [&](const RunRecord& run) {
    return &*std::ranges::find(run.evaluations, name, &EvalRecord::name);
  };
  std::vector<AnswerGroup> groups;
  for (const RunGroup* from : order) {
    groups.push_back(answers_of(*from, choose));
    for (size_t i = 0; i < from->runs.size(); ++i) {
      groups.back().runs[i].settings = settings_of(*choose(*from->runs[i]));
    }
  }
  return groups;
}

std::string options_compare() { return options_help(CompareLine{}); }

int run_compare(const Words& words) {
  CommandLine line = parse_command_line(words, {"json"});
  CompareLine options;
  ucas::apply(options, line.settings);
  if (line.positionals.empty()) {
    throw Error(ErrorKind::usage, "compare: no run directory given, expected ucas compare RUN...");
  }
  std::vector<PublishedTable> published;
  for (const std::string& name : options.published) published.push_back(load_published(name));
  const std::vector<AnswerGroup> groups = compared_groups(line.positionals, options.data);
  const Comparison comparison =
      compare_models(groups, {{.level = options.level, .draws = options.draws, .seed = options.seed}, options.ks});
  out(options.json ? comparison_json(comparison) : comparison_text(comparison, published));
  if (!options.out.empty()) {
    const size_t size = write_report(line.positionals, options.out, "");
    log(str("report: ", options.out, ", ", human_bytes(static_cast<double>(size))));
  }
  return kDone;
}

}  // namespace ucas

// ucas contamination: overlap of training and test problems by n-grams of words.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "base/text/json_object.h"
#include "cli/command.h"
#include "data/contamination.h"
#include "data/problems.h"
#include "hf/hub.h"
#include "results/table.h"

namespace ucas {

namespace {

struct ContaminationConfig {
  std::vector<std::string> data, against;
  int64_t words = 13;
  int64_t examples = 5;
  std::string out;
  bool json = false;

  void fields(Fields& f) {
    f.field("data", data, OptionNames::training_data, "training problem files");
    f.field("against", against, OptionNames::evaluation_data, "evaluation problem files");
    f.field("words", words, Range{2, 1000}, "n-gram length in words: a shared run of n words counts as contamination");
    f.field("examples", examples, Range{0, 1000}, "number of contaminated problems to print; --out has all");
    f.field("out", out, "file for one JSON line per contaminated problem; empty = none");
    f.field("json", json, "print one JSON object with all contaminated problems instead of text");
  }
};

// The most of a problem first.
void sort_by_share(std::vector<Overlap>& found) {
  const auto share = [](const Overlap& o) { return static_cast<double>(o.shared) / static_cast<double>(o.words); };
  std::ranges::stable_sort(
      found, [&](const Overlap& a, const Overlap& b) { return a.whole != b.whole ? a.whole : share(a) > share(b); });
}

struct OverlapCounts {
  int64_t problems = 0, overlaps = 0, whole = 0;
};

std::map<std::string, OverlapCounts> counts_of(const std::vector<Overlap>& found,
                                               const std::vector<Problem>& evaluated) {
  std::map<std::string, OverlapCounts> sources;
  for (const Problem& problem : evaluated) ++sources[problem.source].problems;
  for (const Overlap& overlap : found) {
    OverlapCounts& counts = sources[evaluated[overlap.evaluated].source];
    ++counts.overlaps;
    counts.whole += overlap.whole;
  }
  return sources;
}

std::string table_of(const std::map<std::string, OverlapCounts>& sources) {
  Table table;
  table.head = {"source", "problems", "share a run", "%", "whole"};
  for (const auto& [source, n] : sources) {
    table.rows.push_back({printable(source, 60), grouped(n.problems), grouped(n.overlaps),
                          fixed(100.0 * static_cast<double>(n.overlaps) / static_cast<double>(n.problems), 1),
                          grouped(n.whole)});
  }
  return table.text();
}

OrderedJson row_of(const Overlap& o, const std::vector<Problem>& trained, const std::vector<Problem>& evaluated) {
  const Problem &problem = evaluated[o.evaluated], &with = trained[o.trained];
  return {{"source", problem.source}, {"id", problem.id},   {"words", o.words},
          {"shared", o.shared},       {"whole", o.whole},   {"with_source", with.source},
          {"with", with.id},          {"others", o.others}, {"text", o.text}};
}

std::string json_of(const std::vector<Overlap>& found, const std::vector<Problem>& trained,
                    const std::vector<Problem>& evaluated) {
  OrderedJson object = {{"sources", OrderedJson::object()}, {"problems", OrderedJson::array()}};
  for (const auto& [source, n] : counts_of(found, evaluated)) {
    object["sources"][source] = {{"problems", n.problems}, {"contaminated", n.overlaps}, {"whole", n.whole}};
  }
  for (const Overlap& o : found) object["problems"].push_back(row_of(o, trained, evaluated));
  return json_text(object, 2) + "\n";
}

std::string rows_of(const std::vector<Overlap>& found, const std::vector<Problem>& trained,
                    const std::vector<Problem>& evaluated) {
  std::string rows;
  for (const Overlap& o : found) rows += json_text(row_of(o, trained, evaluated)) + "\n";
  return rows;
}

}  // namespace

std::string options_contamination() { return options_help(ContaminationConfig{}); }

int run_contamination(const Words& words) {
  const CommandLine line = parse_command_line(words, {"json"});
  if (!line.positionals.empty()) {
    throw Error(ErrorKind::usage,
                str("contamination: ", printable(line.positionals[0]), ": expected options only; see --help"));
  }
  ContaminationConfig config;
  ucas::apply(config, line.settings);
  if (config.data.empty() || config.against.empty()) {
    throw Error(ErrorKind::usage,
                "contamination: give the training's files with --data and the evaluation's with --against");
  }
  resolve_hub_names(config);
  ProblemOptions options;
  options.labels = false;
  const std::vector<Problem> trained = read_problems(config.data, options);
  const std::vector<Problem> evaluated = read_problems(config.against, options);
  std::vector<Overlap> found = find_overlaps(trained, evaluated, config.words);
  sort_by_share(found);
  if (!config.out.empty()) write_output(config.out, rows_of(found, trained, evaluated));
  if (config.json) {
    out(json_of(found, trained, evaluated));
    return found.empty() ? kDone : kDiffers;
  }
  out(table_of(counts_of(found, evaluated)));
  for (size_t i = 0; i < found.size() && static_cast<int64_t>(i) < config.examples; ++i) {
    const Overlap& o = found[i];
    const Problem &problem = evaluated[o.evaluated], &with = trained[o.trained];
    out(str("\n", printable(problem.source, 60), " ", printable(problem.id, 80), ": ",
            o.whole ? "all" : str(o.shared, " of"), " ", o.words, " words are those of ", printable(with.source, 60),
            " ", printable(with.id, 80), o.others > 0 ? str(" (and of ", grouped(o.others), " others in part)") : "",
            "\n  ", printable(o.text, 240), "\n"));
  }
  return found.empty() ? kDone : kDiffers;
}

}  // namespace ucas

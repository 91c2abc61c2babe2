#include "report/benchmarks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/str.h"
#include "report/page/tables.h"

namespace ucas {

namespace {

constexpr const char* kMacro = "macro";
constexpr const char* kMicro = "micro";

struct BenchmarkMetrics {
  bool greedy = false;
  int64_t mean = 0, pass = 0;  // largest k
};

void look(const EvalNumbers& numbers, BenchmarkMetrics& metrics) {
  metrics.greedy |= numbers.greedy.known();
  if (!numbers.mean_at.empty()) metrics.mean = std::max(metrics.mean, numbers.mean_at.back().k);
  if (!numbers.pass_at.empty()) metrics.pass = std::max(metrics.pass, numbers.pass_at.back().k);
}

// The evaluations of `data` that have a card, each with its group and run.
struct Carded {
  const RunGroup* group;
  const RunRecord* run;
  const CardSummary* card;
};
std::vector<Carded> carded(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<Carded> all;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      const EvalRecord* e = final_evaluation(*run, data);
      if (e && e->card) all.push_back({&group, run, &*e->card});
    }
  }
  return all;
}

Cell known_cell(const std::string& text) { return text.empty() || text == "null" ? Cell::unknown() : text; }

}  // namespace

std::vector<BenchmarkTable> benchmark_tables(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<std::string> columns;
  std::map<std::string, int64_t> problems;
  BenchmarkMetrics metrics;
  bool macro = false;
  for (const EvalRecord* e : evaluations_of(groups, data)) {
    if (e->by_source.size() < 2) continue;
    look(*e, metrics);
    macro |= e->macro.has_value();
    problems[kMicro] = std::max(problems[kMicro], e->problems);
    for (const auto& [source, numbers] : e->by_source) {
      if (std::ranges::find(columns, source) == columns.end()) columns.push_back(source);
      problems[source] = std::max(problems[source], numbers.problems);
    }
  }
  if (columns.size() < 2) return {};
  if (macro) columns.push_back(kMacro);
  columns.push_back(kMicro);
  std::vector<std::string> names;
  if (metrics.greedy) names.push_back("greedy");
  if (metrics.mean > 0) names.push_back(str("mean@", metrics.mean));
  if (metrics.pass > 1) names.push_back(str("pass@", metrics.pass));
  std::vector<BenchmarkTable> tables;
  for (const std::string& metric : names) {
    BenchmarkTable table{metric, columns, {}, {}};
    for (const std::string& column : columns) table.problems.push_back(problems[column]);
    for (const RunGroup& group : groups) {
      SummaryRow row{&group, {}};
      bool any = false;
      for (const std::string& column : columns) {
        row.cells.push_back(measured(group, data, metric, column == kMicro ? "" : column));
        any |= !row.cells.back().values.empty();
      }
      if (any) table.rows.push_back(std::move(row));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

std::string benchmarks_html(const std::vector<RunGroup>& groups, const std::string& data) {
  std::string out;
  for (const BenchmarkTable& benchmarks : benchmark_tables(groups, data)) {
    const std::string& metric = benchmarks.metric;
    Table table{.head = {""},
                .caption = str(metric == "greedy" ? "Greedy accuracy" : metric, " by benchmark, %"),
                .kind = "plain benchmarks"};
    for (size_t c = 0; c < benchmarks.columns.size(); ++c) {
      const std::string& name = benchmarks.columns[c];
      Cell head = name;
      if (benchmarks.problems[c] > 0) head.below = grouped(benchmarks.problems[c]);
      if (name == kMacro) head.about = "mean of the benchmarks, each counting the same";
      if (name == kMicro) head.about = "over all problems, each counting the same";
      table.head.push_back(std::move(head));
    }
    for (const SummaryRow& row : benchmarks.rows) {
      std::vector<Cell> line = {name_cell(*row.group)};
      for (const SummaryCell& cell : row.cells) line.push_back(value_cell(cell, true, true));
      table.add(std::move(line));
    }
    out += render(table);
  }
  return out;
}

std::vector<std::string> card_differences(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<std::pair<std::string, std::vector<std::string>>> values;  // what, distinct values in order
  auto note = [&](const std::string& what, const std::string& value) {
    auto at = std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == what; });
    if (at == values.end()) at = values.insert(at, {what, {}});
    auto& seen = at->second;
    if (std::find(seen.begin(), seen.end(), value) == seen.end()) seen.push_back(value);
  };
  for (const Carded& c : carded(groups, data)) {
    std::string sampling = c.card->sampling;  // the seed of the draws may differ
    note("sampling", sampling.substr(0, sampling.rfind(", seed ")));
    for (const CardSummary::Set& set : c.card->sets) {
      note("problems of " + set.name, str(set.problems, " (", set.files, ")"));
      note("template of " + set.name, set.prompt_template);
      note("stop tokens of " + set.name, set.stop);
      note("max_tokens of " + set.name, set.max_tokens);
      note("grader of " + set.name, set.grader);
    }
  }
  std::vector<std::string> differences;
  for (const auto& [what, seen] : values) {
    if (seen.size() > 1) differences.push_back(str(what, ": ", join(seen, " | ")));
  }
  return differences;
}

std::string cards_html(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<Carded> all = carded(groups, data);
  if (all.empty()) return "";
  Table table{.head = {"run", "card", "weights", "sampling", "problems", "template", "stop", "limit", "grader"},
              .kind = "plain left"};
  OrderedJson names = OrderedJson::array();
  for (const Carded& c : all) {
    if (all.size() <= 4) names.push_back(c.card->name);
    std::vector<Cell> head = {name_cell(*c.group, c.run->name), Cell(c.card->name).with(&Cell::code, true),
                              Cell(c.card->model).with(&Cell::code, true), known_cell(c.card->sampling)};
    if (c.card->sets.empty()) table.add(head);
    for (const CardSummary::Set& set : c.card->sets) {
      Cell problems = known_cell(set.name);
      problems.below = str(set.problems, " problems, ", set.files);
      head.insert(head.end(), {problems, known_cell(set.prompt_template), known_cell(set.stop),
                               known_cell(set.max_tokens), known_cell(set.grader)});
      table.add(std::move(head));
      head.assign(4, {});  // further sets of the same card
    }
  }
  return render("cards.html", {{"cards", all.size() == 1 ? "card" : "cards"},
                               {"names", names},
                               {"count", all.size() <= 4 ? "" : str(all.size())},
                               {"table", render(table)}});
}

}  // namespace ucas

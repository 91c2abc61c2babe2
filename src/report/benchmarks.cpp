#include "report/benchmarks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/str.h"
#include "report/escape.h"
#include "report/tables.h"

namespace ucas {

namespace {

constexpr const char* kMacro = "macro";
constexpr const char* kMicro = "micro";

// The part of an evaluation that a column shows.
const EvalNumbers* part(const EvalRecord& e, const std::string& column) {
  if (column == kMicro) return &e;
  if (column == kMacro) return e.macro ? &*e.macro : nullptr;
  for (const auto& [source, numbers] : e.by_source) {
    if (source == column) return &numbers;
  }
  return nullptr;
}

SummaryCell cell_of(const RunGroup& group, const std::string& data, const std::string& column,
                    const std::string& metric) {
  SummaryCell cell;
  for (const RunRecord* run : group.runs) {
    const EvalRecord* e = final_evaluation(*run, data);
    const EvalNumbers* numbers = e ? part(*e, column) : nullptr;
    Figure f = numbers ? figure_named(*numbers, metric) : Figure{};
    if (!f.known()) continue;
    cell.values.push_back(f.value);
    cell.each.push_back(f);
  }
  conclude(cell, true);
  return cell;
}

struct Metrics {
  bool greedy = false;
  int64_t mean = 0, pass = 0;  // largest k
};

void look(const EvalNumbers& numbers, Metrics& metrics) {
  metrics.greedy |= numbers.greedy.known();
  if (!numbers.mean_at.empty()) metrics.mean = std::max(metrics.mean, numbers.mean_at.back().k);
  if (!numbers.pass_at.empty()) metrics.pass = std::max(metrics.pass, numbers.pass_at.back().k);
}

std::string cell_html(const SummaryCell& cell) {
  if (cell.values.empty()) return "<span class=\"quiet\">&#8211;</span>";
  std::string out = str("<b>", number_text(cell.mean, true), "</b>");
  if (!std::isnan(cell.deviation)) out += str("<small> &#177;&#8201;", number_text(cell.deviation, true), "</small>");
  if (cell.interval.bounded()) {
    out += str("<span class=\"bounds\">", number_text(cell.interval.low, true), "&#8211;",
               number_text(cell.interval.high, true), "</span>");
  }
  return out;
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

std::string shown(const std::string& text) {
  return text.empty() || text == "null" ? "<span class=\"quiet\">&#8211;</span>" : html_text(text);
}

}  // namespace

std::vector<BenchmarkTable> benchmark_tables(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<std::string> columns;
  std::map<std::string, int64_t> problems;
  Metrics metrics;
  bool macro = false;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      const EvalRecord* e = final_evaluation(*run, data);
      if (!e || e->by_source.size() < 2) continue;
      look(*e, metrics);
      macro |= e->macro.has_value();
      problems[kMicro] = std::max(problems[kMicro], e->problems);
      for (const auto& [source, numbers] : e->by_source) {
        if (std::find(columns.begin(), columns.end(), source) == columns.end()) columns.push_back(source);
        problems[source] = std::max(problems[source], numbers.problems);
      }
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
        row.cells.push_back(cell_of(group, data, column, metric));
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
  for (const BenchmarkTable& table : benchmark_tables(groups, data)) {
    out += str("<div class=\"scroll\"><table class=\"plain benchmarks\"><caption>",
               table.metric == "greedy" ? "Greedy accuracy" : table.metric,
               " by benchmark, %</caption><thead><tr><td></td>");
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& name = table.columns[c];
      const char* about = name == kMacro   ? " title=\"mean of the benchmarks, each counting the same\""
                          : name == kMicro ? " title=\"over all problems, each counting the same\""
                                           : "";
      out += str("<th scope=\"col\"", about, ">", html_text(name),
                 table.problems[c] > 0 ? str("<span class=\"bounds\">", grouped(table.problems[c]), "</span>") : "",
                 "</th>");
    }
    out += "</tr></thead><tbody>";
    for (const SummaryRow& row : table.rows) {
      out += str("<tr><th scope=\"row\">", color_key(*row.group), html_text(row.group->title), "</th>");
      for (const SummaryCell& cell : row.cells) out += str("<td>", cell_html(cell), "</td>");
      out += "</tr>";
    }
    out += "</tbody></table></div>";
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
      note("template of " + set.name, set.form);
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
  std::string rows;
  for (const Carded& c : all) {
    std::string head =
        str("<tr><th scope=\"row\">", color_key(*c.group), html_text(c.group->title), "<span class=\"bounds\">",
            html_text(c.run->name), "</span></th><td><code>", shown(c.card->name), "</code></td><td><code>",
            shown(c.card->model), "</code></td><td>", shown(c.card->sampling), "</td>");
    if (c.card->sets.empty()) rows += head + "<td></td><td></td><td></td><td></td><td></td></tr>";
    for (const CardSummary::Set& set : c.card->sets) {
      bool first = &set == c.card->sets.data();
      rows += str(first ? head : "<tr><th></th><td></td><td></td><td></td>", "<td>", shown(set.name),
                  "<span class=\"bounds\">", shown(set.problems), " problems, <code>", shown(set.files),
                  "</code></span></td><td>", shown(set.form), "</td><td>", shown(set.stop), "</td><td>",
                  shown(set.max_tokens), "</td><td>", shown(set.grader), "</td></tr>");
    }
  }
  std::string names;
  for (const Carded& c : all) names += str(names.empty() ? "" : ", ", "<code>", shown(c.card->name), "</code>");
  return str("<details class=\"fold cards\"><summary>Run card", all.size() == 1 ? " " : "s ",
             all.size() <= 4 ? names : str(all.size()),
             "</summary><p class=\"note\">What decided these figures, by the first digits of SHA-256; <code>ucas "
             "verify-run</code> grades the stored responses again and holds them against the card.</p><div "
             "class=\"scroll\"><table class=\"plain left\"><thead><tr><th scope=\"col\">run</th><th "
             "scope=\"col\">card</th><th scope=\"col\">weights</th><th scope=\"col\">sampling</th><th "
             "scope=\"col\">problems</th><th scope=\"col\">template</th><th scope=\"col\">stop</th><th "
             "scope=\"col\">limit</th><th scope=\"col\">grader</th></tr></thead><tbody>",
             rows, "</tbody></table></div></details>");
}

}  // namespace ucas

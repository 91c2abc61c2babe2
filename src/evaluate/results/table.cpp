#include "evaluate/results/table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/str.h"
#include "results/compare/answers.h"
#include "results/table.h"

namespace ucas {

namespace {

// What any of the models has.
std::vector<std::string> shares_of(const std::vector<const EvalNumbers*>& models) {
  std::vector<std::string> names;
  for (const EvalNumbers* figures : models) {
    for (std::string& name : ucas::shares_of(*figures)) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

// "-" where a model has no such set.
Cell score_cell(const EvalNumbers* figures, const std::string& metric) {
  return figures == nullptr ? Cell::unknown() : Cell::figure(figure_named(*figures, metric));
}

std::string heading(const std::string& name, int64_t problems) { return str(name, " (", grouped(problems), ")"); }

// Models across.
Table table_of(const std::string& title, std::span<const EvalRecord> results) {
  Table table{.head = {title}, .align = "l"};
  for (const EvalRecord& result : results) table.head.emplace_back(result.label);
  return table;
}

// A row: `of(result)` for each model.
void add_row(Table& table, const std::string& name, std::span<const EvalRecord> results,
             const std::function<Cell(const EvalRecord&)>& of) {
  std::vector<Cell> row = {name};
  for (const EvalRecord& result : results) row.push_back(of(result));
  table.add(std::move(row));
}

// Metrics down, of all problems or of one source.
std::string metrics_block(const std::string& source, std::span<const EvalRecord> results) {
  const auto of = [&](const EvalRecord& result) -> const EvalNumbers& {
    return source.empty() ? result : *result.of(source);
  };
  std::vector<const EvalNumbers*> models;
  for (const EvalRecord& result : results) models.push_back(&of(result));
  Table table = table_of(heading(source.empty() ? "problems" : source, models.front()->problems), results);
  for (const std::string& share : shares_of(models)) {
    add_row(table, metric_title(share) + " %", results, [&](const EvalRecord& r) { return score_cell(&of(r), share); });
  }
  add_row(table, "entropy", results, [&](const EvalRecord& r) { return Cell::decimal(of(r).entropy, 3); });
  add_row(table, "tokens", results, [&](const EvalRecord& r) { return Cell::decimal(of(r).length, 1); });
  add_row(table, "cut at limit %", results, [&](const EvalRecord& r) { return Cell::value(of(r).truncated, true); });
  add_row(table, "unparseable %", results, [&](const EvalRecord& r) { return Cell::value(of(r).unparseable, true); });
  return table.text();
}

// One score, sets down. "" if no model has it.
std::string score_block(const std::string& share, std::span<const EvalRecord> results) {
  Table table = table_of(metric_title(share) + " %", results);
  const EvalRecord& first = results.front();
  // Subjects are for a benchmark on its own (MMLU's usual score); among several sets they would be one more average.
  for (const auto& [name, numbers] : first.by_source) {
    const std::string& source = name;
    add_row(table, heading(source, numbers.problems), results,
            [&](const EvalRecord& r) { return score_cell(r.of(source), share); });
    const auto subjects = first.by_subject.find(source);
    if (subjects == first.by_subject.end() || first.by_source.size() > 1) continue;
    add_row(table, str("  mean of its ", subjects->second.subjects.size(), " subjects"), results,
            [&](const EvalRecord& r) {
              const auto found = r.by_subject.find(source);
              return score_cell(found == r.by_subject.end() ? nullptr : &found->second.macro, share);
            });
  }
  if (first.macro) {
    add_row(table, "mean of the sets (macro)", results,
            [&](const EvalRecord& r) { return score_cell(r.macro ? &*r.macro : nullptr, share); });
    add_row(table, heading("all problems (micro)", first.problems), results,
            [&](const EvalRecord& r) { return score_cell(&r, share); });
  }
  const bool any = std::ranges::any_of(table.rows, [](const Table::Row& row) {
    return std::ranges::any_of(row.cells, [](const Cell& cell) { return cell.is_number() && cell.known(); });
  });
  return any ? table.text() + "\n" : "";
}

std::string responses_block(const EvalRecord& result) {
  Table table{.head = {result.label, "tokens", "cut at limit %", "unparseable %", "entropy"}, .align = "l"};
  const auto add = [&](const std::string& name, const EvalNumbers& f) {
    table.add({heading(name, f.problems), Cell::decimal(f.length, 1), Cell::value(f.truncated, true),
               Cell::value(f.unparseable, true), Cell::decimal(f.entropy, 3)});
  };
  for (const auto& [source, numbers] : result.by_source) add(source, numbers);
  if (result.by_source.size() > 1) add("all problems", result);
  return table.text() + "\n";
}

std::vector<PublishedLine> lines_for(const Comparison& c, const ComparedMetric& metric,
                                     std::span<const PublishedTable> tables) {
  std::vector<std::string> sets;
  for (const ComparedSet& set : c.sets) sets.push_back(set.name);
  std::vector<PublishedLine> lines;
  for (const PublishedTable& table : tables) {
    for (PublishedLine& line : published_lines(table, metric.key, sets)) lines.push_back(std::move(line));
  }
  return lines;
}

// Doubts about the published lines of all metrics, each printed once.
std::string doubts_text(const Comparison& c, const PublishedTable& table) {
  std::string out;
  std::set<std::string> said;
  for (const ComparedMetric& metric : c.metrics) {
    for (const PublishedLine& line : lines_for(c, metric, {&table, 1})) {
      if (line.doubts.empty()) continue;
      std::string text = str("    ", printable(line.name, 60), "\n");
      for (const std::string& doubt : line.doubts) text += str("      ", printable(doubt, 200), "\n");
      if (said.insert(text).second) out += text;
    }
  }
  return out.empty() ? out : "  Doubtful (? in the table):\n" + out;
}

// The models by the sets: values, their bounds below them.
std::string metric_text(const Comparison& c, const ComparedMetric& metric, std::span<const PublishedTable> published) {
  Table table;
  table.head.push_back(metric.title + " %");
  for (const ComparedSet& set : c.sets) table.head.push_back(set.title);
  std::vector<Cell> problems = {"  problems"};
  for (const ComparedSet& set : c.sets) problems.push_back(Cell::count(set.problems));
  table.add(std::move(problems));
  for (size_t g = 0; g < c.groups.size(); ++g) {
    std::vector<Cell> values = {c.groups[g]}, bounds = {""};
    for (const Estimated& reached : metric.cell[g]) {
      values.push_back(Cell::mean(reached.value, reached.deviation, true));
      bounds.emplace_back(bounds_text(reached.value, true));
    }
    table.add(std::move(values));
    table.add(std::move(bounds));
  }
  for (const PublishedLine& line : lines_for(c, metric, published)) {
    std::vector<Cell> cells = {printable(line.name, 60)};
    cells.insert(cells.end(), line.cells.begin(), line.cells.end());
    table.add(std::move(cells));
  }
  return table.text();
}

// The first column's test, and where others have another one.
std::string tests_text(const Comparison& c, const std::vector<Contrast>& contrasts) {
  std::string first, others;
  for (size_t s = 0; s < contrasts.size(); ++s) {
    const std::string& basis = contrasts[s].basis;
    if (first.empty()) first = basis;
    if (!basis.empty() && basis != first) others += str("; ", printable(c.sets[s].title, 24), ": ", basis);
  }
  return first + others;
}

std::string contrasts_text(const Comparison& c, const ComparedMetric& metric) {
  std::string out;
  for (size_t g = 1; g < c.groups.size(); ++g) {
    Table table;
    table.align = "lrrrlll";
    for (size_t s = 0; s < c.sets.size(); ++s) {
      const Contrast& d = metric.contrast[g][s];
      if (!d.known()) continue;
      const std::string changed = d.gained >= 0 ? str("+", d.gained, " -", d.lost) : "";
      table.add({c.sets[s].title, Cell::change(d.change.value, true), interval_text(d.change, true), changed,
                 Cell::p(d.p).with(&Cell::before, "p "), Cell::p(d.p_holm).with(&Cell::before, "corrected "),
                 words_of(d, c.options.level)});
    }
    if (table.rows.empty()) continue;
    out += str("  ", printable(c.groups[g], 40), " less ", printable(c.groups[0], 40), ", points:\n",
               table.text("    "), "    test: ", tests_text(c, metric.contrast[g]), "\n");
  }
  if (!out.empty() && metric.comparisons > 0) {
    out += str("  ", family_text(metric.comparisons, c.options.level), ": ", metric.family, "\n");
  }
  return out;
}

}  // namespace

std::string summary_table(std::span<const EvalRecord> results) {
  if (results.empty()) return "";
  std::string text = metrics_block("", results);
  const auto& sources = results.front().by_source;
  for (const auto& [source, ignored] : sources) {
    if (sources.size() > 1) text += "\n" + metrics_block(source, results);
  }
  return text;
}

std::string suite_table(std::span<const EvalRecord> results) {
  if (results.empty()) return "";
  std::string text;
  for (const std::string& share : shares_of(results.front())) {
    if (share != "pass@1") text += score_block(share, results);  // the same as mean@n
  }
  for (const EvalRecord& result : results) text += responses_block(result);
  text.pop_back();
  return text;
}

std::string comparison_text(const Comparison& c, std::span<const PublishedTable> published) {
  std::string out;
  for (const std::string& warning : c.warnings) out += str("warning: ", warning, "\n");
  for (const std::string& line : c.differing) out += str("  differs: ", line, "\n");
  for (const ComparedMetric& metric : c.metrics) {
    out += str(out.empty() ? "" : "\n", metric_text(c, metric, published));
    const std::string contrasts = contrasts_text(c, metric);
    if (!contrasts.empty()) out += "\n" + contrasts;
  }
  for (const PublishedTable& table : published) {
    out += str("\npublished: ", printable(table.title, 200), ". Source: ", printable(table.source, 400),
               ". Not measured here, in no test and no average.\n");
    if (!table.note.empty()) out += str("  ", printable(table.note, 1000), "\n");
    const bool compared = std::any_of(c.metrics.begin(), c.metrics.end(), [&](const ComparedMetric& metric) {
      return !lines_for(c, metric, {&table, 1}).empty();
    });
    out += doubts_text(c, table);
    if (!compared) out += "  It has no figures of the sets compared here.\n";
  }
  return out;
}

std::string comparison_text(std::span<const EvalRecord> results) {
  if (results.size() < 2) return "";
  std::vector<AnswerGroup> groups;
  for (const EvalRecord& result : results) groups.push_back({result.label, true, {answers_of(result)}});
  ModelsOptions options;
  options.level = results[0].config.confidence_level;
  options.seed = results[0].config.seed;
  const Comparison c = compare_models(groups, options);
  std::string out = str("Differences, paired by problem:\n");
  for (const ComparedMetric& metric : c.metrics) {
    out += str("\n", metric.title, "\n", contrasts_text(c, metric));
  }
  return out;
}

}  // namespace ucas

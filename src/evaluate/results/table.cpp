#include "evaluate/results/table.h"

#include <algorithm>
#include <functional>

#include "base/str.h"
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

}  // namespace ucas

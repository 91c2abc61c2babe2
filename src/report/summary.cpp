#include "report/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/str.h"
#include "core/metrics.h"
#include "report/escape.h"
#include "results/compare/answers.h"

namespace ucas {

namespace {

// A few k that say enough: 4, 16, 64 where there, always the largest.
std::vector<int64_t> few(const std::set<int64_t>& all) {
  std::vector<int64_t> chosen;
  for (int64_t k : {4, 16, 64}) {
    if (all.contains(k)) chosen.push_back(k);
  }
  if (!all.empty() && *all.rbegin() > 1 && !std::count(chosen.begin(), chosen.end(), *all.rbegin())) {
    chosen.push_back(*all.rbegin());
  }
  return chosen;
}

constexpr double kSummaryLevel = 0.95;

// `quoted`: the mean of the samples that models are compared by; the table shows the same.
std::vector<SummaryColumn> columns_of(const std::vector<const EvalRecord*>& evaluations,
                                      const std::vector<Quantity>& quoted) {
  std::set<int64_t> mean_k, pass_k;
  for (const EvalRecord* e : evaluations) {
    for (const FigureAt& item : e->mean_at) mean_k.insert(item.k);
    for (const FigureAt& item : e->pass_at) pass_k.insert(item.k);
  }
  std::vector<SummaryColumn> columns = {
      {"greedy", "greedy", "share of problems solved by the greedy response (pass@1)", true, true}};
  if (!mean_k.empty()) {  // mean@16 is what the field quotes
    int64_t k = mean_k.contains(kQuotedSamples) ? kQuotedSamples : *mean_k.rbegin();
    for (const Quantity& quantity : quoted) {
      if (quantity.name == "mean" && mean_k.contains(quantity.k)) k = quantity.k;
    }
    columns.push_back({str("mean@", k), str("mean@", k),
                       str("share of right responses among ", k, " samples a problem"), true, true});
  }
  for (int64_t k : few(pass_k)) {
    columns.push_back({str("pass@", k), str("pass@", k),
                       str("chance that at least one of ", k, " samples is right (unbiased estimate)"), true, true});
  }
  columns.insert(columns.end(),
                 {{"entropy", "entropy", "mean entropy per sampled token, in nats", false},
                  {"length", "length", "mean response length in tokens, end token included", false},
                  {"truncated", "truncated", "share of responses that hit the length limit"},
                  {"unparseable", "unparseable", "share of responses without an answer that could be read"}});
  std::erase_if(columns, [&](const SummaryColumn& column) {
    return std::ranges::none_of(evaluations, [&](const EvalRecord* e) { return figure_named(*e, column.key).known(); });
  });
  return columns;
}

// "1.7" of a difference of -0.017, with a second digit where one would say nothing.
std::string magnitude(double share) {
  const std::string text = change_text(std::fabs(share), true);
  return text.starts_with('+') ? text.substr(1) : text;
}

void say(Difference& d, const std::vector<RunGroup>& groups) {
  const std::string &to = groups[d.to].title, &from = groups[d.from].title, words = words_of(d.contrast, kSummaryLevel);
  const Figure& change = d.contrast.change;
  const std::string numbers =
      str(change.bounded() ? str(percent(kSummaryLevel, 0), " interval ", interval_text(change, true), ", ") : "",
          p_texts(d.contrast), "; ", basis_text(d.contrast));
  if (d.contrast.significant) {
    d.sentence =
        str(to, ", ", d.metric, ": ", magnitude(change.value), " points ", words, " than ", from, " (", numbers, ").");
  } else {
    d.sentence = str(to, ", ", d.metric, ": the difference from ", from, " is ", words, " (",
                     change_text(change.value, true), " points, ", numbers, ").");
  }
}

void compare(ResultTable& summary, const std::vector<RunGroup>& groups) {
  std::vector<AnswerGroup> answers;
  for (const RunGroup& group : groups) {
    answers.push_back(answers_of(group, [&](const RunRecord& run) { return final_evaluation(run, summary.data); }));
  }
  auto index = [&](const RunGroup* group) { return static_cast<size_t>(group - groups.data()); };
  auto add = [&](const SummaryRow& from, const SummaryRow& to) {
    for (const Quantity& quantity : summary.quoted) {
      Difference d{index(from.group), index(to.group), metric_title(quantity.text()), {}, ""};
      d.contrast = contrast(answers[d.from], answers[d.to], quantity, {.level = kSummaryLevel});
      // No claim where there are neither several runs nor answers per problem to pair.
      const bool claimed = !std::isnan(d.contrast.p) || !d.contrast.estimable;
      if (d.contrast.known() && claimed) summary.differences.push_back(std::move(d));
    }
  };
  for (const SummaryRow& base : summary.rows) {
    if (base.group->trained) continue;
    for (const SummaryRow& row : summary.rows) {
      if (row.group->trained) add(base, row);
    }
  }
  const SummaryRow* reference = nullptr;  // the first that was trained
  for (const SummaryRow& row : summary.rows) {
    if (!row.group->trained) continue;
    if (reference) add(*reference, row);
    if (!reference) reference = &row;
  }
  std::vector<Contrast*> family;
  for (Difference& d : summary.differences) family.push_back(&d.contrast);
  summary.comparisons = correct(family, kSummaryLevel);
  for (Difference& d : summary.differences) say(d, groups);
}

// What models are compared by: of the evaluations that hold answers per problem, else of all.
std::vector<Quantity> quoted_of(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<RunAnswers> runs;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      if (const EvalRecord* evaluation = final_evaluation(*run, data)) runs.push_back(answers_of(*run, *evaluation));
    }
  }
  std::vector<const RunAnswers*> all;
  for (const RunAnswers& run : runs) all.push_back(&run);
  return quoted_quantities(all);
}

}  // namespace

void conclude(SummaryCell& cell, bool share) {
  cell.mean = mean_of(cell.values);
  cell.deviation = deviation_of(cell.values);
  if (cell.values.size() == 1) cell.interval = cell.each[0];
  if (cell.values.size() < 2) return;
  cell.interval = mean_estimate(cell.values);
  if (share) cell.interval = within_share(cell.interval);
}

const EvalNumbers* numbers_of(const EvalRecord& evaluation, const std::string& source) {
  if (source.empty()) return &evaluation;
  for (const auto& [name, numbers] : evaluation.by_source) {
    if (name == source) return &numbers;
  }
  return source == "macro" && evaluation.macro ? &*evaluation.macro : nullptr;
}

SummaryCell measured(const RunGroup& group, const std::string& data, const std::string& metric,
                     const std::string& source) {
  SummaryCell cell;
  for (const RunRecord* run : group.runs) {
    const EvalRecord* evaluation = final_evaluation(*run, data);
    const EvalNumbers* numbers = evaluation ? numbers_of(*evaluation, source) : nullptr;
    const Figure figure = numbers ? figure_named(*numbers, metric) : Figure{};
    if (!figure.known()) continue;
    cell.values.push_back(figure.value);
    cell.each.push_back(figure);
  }
  conclude(cell, is_share(metric));
  return cell;
}

std::vector<const EvalRecord*> evaluations_of(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<const EvalRecord*> all;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      if (const EvalRecord* evaluation = final_evaluation(*run, data)) all.push_back(evaluation);
    }
  }
  return all;
}

std::vector<ResultTable> results_of(const std::vector<RunGroup>& groups) {
  std::vector<ResultTable> summaries;
  for (const std::string& data : evaluated_data(groups)) {
    ResultTable summary;
    summary.data = data;
    const std::vector<const EvalRecord*> evaluations = evaluations_of(groups, data);
    summary.quoted = quoted_of(groups, data);
    summary.columns = columns_of(evaluations, summary.quoted);
    summary.problems = evaluations[0]->problems;
    summary.samples = evaluations[0]->config.samples;
    summary.temperature = evaluations[0]->config.temperature;
    summary.interval = evaluations[0]->interval;
    for (const RunGroup& group : groups) {
      SummaryRow row{&group, {}};
      bool any = false;
      for (const SummaryColumn& column : summary.columns) {
        row.cells.push_back(measured(group, data, column.key));
        any |= !row.cells.back().values.empty();
      }
      if (any) summary.rows.push_back(std::move(row));
    }
    compare(summary, groups);
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::string summary_table(const std::vector<ResultTable>& summaries, size_t width) {
  std::string out;
  for (const ResultTable& summary : summaries) {
    bool several = false;
    for (const SummaryRow& row : summary.rows) several |= row.group->runs.size() > 1;
    if (!out.empty()) out += "\n";
    Table table;
    table.caption = str(summary.data.empty() ? "evaluation" : printable(short_path(summary.data, 1)), ": ",
                        grouped(summary.problems), " problems");
    if (summary.samples > 0) table.caption += str(", ", summary.samples, " samples each");
    if (!std::isnan(summary.temperature)) table.caption += str(" at temperature ", summary.temperature);
    if (several) table.caption += "; mean +- std over seeds";
    table.head.emplace_back("");
    for (const SummaryColumn& column : summary.columns) {
      table.head.emplace_back(column.title + (column.share ? " %" : ""));
    }
    for (const SummaryRow& row : summary.rows) {
      std::vector<Cell> line = {printable(row.group->title, 40)};
      for (size_t c = 0; c < row.cells.size(); ++c) line.push_back(row.cells[c].shown(summary.columns[c].share));
      table.add(std::move(line));
    }
    for (const Difference& d : summary.differences) table.notes.push_back(d.sentence);
    if (summary.comparisons > 1) table.notes.push_back(family_text(summary.comparisons, kSummaryLevel));
    out += table.text("  ", width);
  }
  return out;
}

std::string summary_table(const std::vector<std::string>& paths, size_t width) {
  const std::vector<RunRecord> runs = read_runs(paths);
  std::vector<RunGroup> groups = group_runs(runs);
  std::vector<ResultTable> summaries = results_of(groups);
  return summaries.empty() ? "no evaluation in these runs\n" : summary_table(summaries, width);
}

}  // namespace ucas

#include "report/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/str.h"
#include "report/escape.h"

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

std::vector<SummaryColumn> columns_of(const std::vector<const EvalRecord*>& evaluations) {
  std::set<int64_t> mean_k, pass_k;
  bool entropy = false, length = false, truncated = false, unparseable = false, greedy = false;
  for (const EvalRecord* e : evaluations) {
    for (const FigureAt& item : e->mean_at) mean_k.insert(item.k);
    for (const FigureAt& item : e->pass_at) pass_k.insert(item.k);
    greedy |= e->greedy.known();
    entropy |= !std::isnan(e->entropy);
    length |= !std::isnan(e->length);
    truncated |= !std::isnan(e->truncated);
    unparseable |= !std::isnan(e->unparseable);
  }
  std::vector<SummaryColumn> columns;
  if (greedy)
    columns.push_back({"greedy", "greedy", "share of problems solved by the greedy response (pass@1)", true, true});
  if (!mean_k.empty()) {  // mean@16 is what the field quotes
    int64_t k = mean_k.contains(16) ? 16 : *mean_k.rbegin();
    columns.push_back({str("mean@", k), str("mean@", k),
                       str("share of right responses among ", k, " samples a problem"), true, true});
  }
  for (int64_t k : few(pass_k)) {
    columns.push_back({str("pass@", k), str("pass@", k),
                       str("chance that at least one of ", k, " samples is right (unbiased estimate)"), true, true});
  }
  if (entropy) columns.push_back({"entropy", "entropy", "mean entropy per sampled token, in nats", false});
  if (length) columns.push_back({"length", "length", "mean response length in tokens, end token included", false});
  if (truncated) columns.push_back({"truncated", "truncated", "share of responses that hit the length limit", true});
  if (unparseable)
    columns.push_back({"unparseable", "unparseable", "share of responses without an answer that could be read", true});
  return columns;
}

constexpr const char* kStepSeconds = "step_seconds";

// Mean seconds of a training step, validation left out.
Figure step_seconds(const RunRecord& run) {
  const std::vector<double>*step = run.steps.find("timing_s/step"), *testing = run.steps.find("timing_s/testing");
  if (!step) return {};
  std::vector<double> seconds;
  for (size_t i = 0; i < step->size(); ++i) {
    double validation = testing && !std::isnan((*testing)[i]) ? (*testing)[i] : 0;
    if (!std::isnan((*step)[i])) seconds.push_back((*step)[i] - validation);
  }
  return {mean_of(seconds), kUnknown, kUnknown};
}

SummaryCell cell_of(const RunGroup& group, const std::string& data, const std::string& key) {
  SummaryCell cell;
  for (const RunRecord* run : group.runs) {
    const EvalRecord* evaluation = final_evaluation(*run, data);
    if (!evaluation) continue;
    Figure value = key == kStepSeconds ? step_seconds(*run) : figure_named(*evaluation, key);
    if (!value.known()) continue;
    cell.values.push_back(value.value);
    cell.each.push_back(value);
  }
  conclude(cell, key != "entropy" && key != "length" && key != kStepSeconds);
  return cell;
}

// Runs of both groups that share a seed (and have this evaluation).
std::vector<std::pair<const EvalRecord*, const EvalRecord*>> paired(const RunGroup& from, const RunGroup& to,
                                                                    const std::string& data) {
  std::vector<std::pair<const EvalRecord*, const EvalRecord*>> pairs;
  for (const RunRecord* a : from.runs) {
    for (const RunRecord* b : to.runs) {
      if (a->seed < 0 || a->seed != b->seed) continue;
      const EvalRecord *x = final_evaluation(*a, data), *y = final_evaluation(*b, data);
      if (x && y) pairs.emplace_back(x, y);
      break;
    }
  }
  return pairs;
}

bool greedy_right(const ProblemRow& problem) { return problem.greedy.verdict == "equal"; }

// Over the problems that both evaluations hold.
Figure over_problems(const EvalRecord& from, const EvalRecord& to, bool greedy, int64_t& pairs) {
  std::map<std::string, const ProblemRow*> by_id;
  for (const ProblemRow& problem : from.rows) by_id.emplace(problem.id, &problem);
  int64_t gained = 0, lost = 0;
  std::vector<double> differences;
  for (const ProblemRow& problem : to.rows) {
    auto found = by_id.find(problem.id);
    if (found == by_id.end()) continue;
    const ProblemRow& before = *found->second;
    if (greedy) {
      if (!problem.has_greedy || !before.has_greedy) continue;
      gained += greedy_right(problem) && !greedy_right(before);
      lost += !greedy_right(problem) && greedy_right(before);
      differences.push_back(0);
    } else if (problem.samples > 0 && before.samples > 0) {
      differences.push_back(static_cast<double>(problem.correct) / static_cast<double>(problem.samples) -
                            static_cast<double>(before.correct) / static_cast<double>(before.samples));
    }
  }
  pairs = static_cast<int64_t>(differences.size());
  return greedy ? paired_share_difference(gained, lost, pairs) : mean_estimate(differences);
}

// Percentage points, with a second digit where one would say nothing.
std::string magnitude(double share) {
  std::string text = fixed(100 * std::fabs(share), 1);
  return text == "0.0" ? fixed(100 * std::fabs(share), 2) : text;
}

std::string points(double share) {
  std::string text = magnitude(share);
  return str(text == "0.00" ? "" : share < 0 ? "-" : "+", text == "0.00" ? "0" : text);
}

Difference difference(const std::vector<RunGroup>& groups, size_t from, size_t to, const std::string& data,
                      const SummaryColumn& column) {
  Difference d{from, to, column.key == "greedy" ? "greedy pass@1" : column.key, {}, "", ""};
  auto pairs = paired(groups[from], groups[to], data);
  bool one_base = false;
  if (groups[from].runs.size() == 1 && groups[to].runs.size() > 1) {  // every seed began at the same checkpoint
    pairs.clear();
    const EvalRecord* base = final_evaluation(*groups[from].runs[0], data);
    for (const RunRecord* run : groups[to].runs) {
      if (const EvalRecord* evaluation = final_evaluation(*run, data)) pairs.emplace_back(base, evaluation);
    }
    one_base = true;
  }
  if (pairs.size() > 1) {
    std::vector<double> changes;
    for (auto [a, b] : pairs) {
      double change = figure_named(*b, column.key).value - figure_named(*a, column.key).value;
      if (!std::isnan(change)) changes.push_back(change);
    }
    d.change = mean_estimate(changes);
    d.change.low = std::max(-1.0, d.change.low);
    d.change.high = std::min(1.0, d.change.high);
    d.basis = str(changes.size(), one_base ? " seeds against one run" : " seeds, paired");
    return d;
  }
  const EvalRecord *a = nullptr, *b = nullptr;
  if (pairs.size() == 1) {
    std::tie(a, b) = pairs[0];
  } else {
    for (const RunRecord* run : groups[from].runs) a = a ? a : final_evaluation(*run, data);
    for (const RunRecord* run : groups[to].runs) b = b ? b : final_evaluation(*run, data);
  }
  if (!a || !b) return d;
  int64_t count = 0;
  d.change = over_problems(*a, *b, column.key == "greedy", count);
  d.basis = str(grouped(count), " problems, paired", pairs.empty() ? "; the seeds differ" : "");
  if (count == 0) {
    d.change = {figure_named(*b, column.key).value - figure_named(*a, column.key).value, kUnknown, kUnknown};
    d.basis = "one run each, no rows per problem to pair";
  }
  return d;
}

void say(Difference& d, const std::vector<RunGroup>& groups) {
  const std::string &to = groups[d.to].title, &from = groups[d.from].title;
  std::string bounds = str("95 % interval ", points(d.change.low), " to ", points(d.change.high));
  if (!d.told_apart()) {
    d.sentence = str(to, ", ", d.metric, ": not distinguishable from ", from, " (", points(d.change.value), " points, ",
                     bounds, "; ", d.basis, ").");
  } else {
    d.sentence = str(to, ", ", d.metric, ": ", magnitude(d.change.value), " points ",
                     d.change.value > 0 ? "higher than " : "lower than ", from, " (", bounds, "; ", d.basis, ").");
  }
}

void compare(ResultTable& summary, const std::vector<RunGroup>& groups) {
  auto index = [&](const RunGroup* group) { return static_cast<size_t>(group - groups.data()); };
  auto row_of = [&](bool trained) -> const SummaryRow* {
    for (const SummaryRow& row : summary.rows) {
      if (row.group->trained == trained) return &row;
    }
    return nullptr;
  };
  auto add = [&](const SummaryRow& from, const SummaryRow& to) {
    for (size_t c = 0; c < summary.columns.size(); ++c) {
      const SummaryColumn& column = summary.columns[c];
      if (column.key != "greedy" && !column.key.starts_with("mean@")) continue;
      if (from.cells[c].values.empty() || to.cells[c].values.empty()) continue;
      Difference d = difference(groups, index(from.group), index(to.group), summary.data, column);
      if (std::isnan(d.change.value)) continue;
      if (!d.change.bounded()) {
        ++summary.unclaimed;
        continue;
      }
      say(d, groups);
      summary.differences.push_back(std::move(d));
    }
  };
  const SummaryRow *base = row_of(false), *reference = row_of(true);
  for (const SummaryRow& row : summary.rows) {
    if (base && row.group->trained) add(*base, row);
  }
  for (const SummaryRow& row : summary.rows) {
    if (reference && row.group->trained && &row != reference) add(*reference, row);
  }
}

}  // namespace

void conclude(SummaryCell& cell, bool share) {
  cell.mean = mean_of(cell.values);
  cell.deviation = deviation_of(cell.values);
  if (cell.values.size() == 1) cell.interval = cell.each[0];
  if (cell.values.size() < 2) return;
  cell.interval = mean_estimate(cell.values);
  if (!share) return;
  cell.interval.low = std::max(0.0, cell.interval.low);
  cell.interval.high = std::min(1.0, cell.interval.high);
}

std::vector<ResultTable> results_of(const std::vector<RunGroup>& groups) {
  std::vector<ResultTable> summaries;
  for (const std::string& data : evaluated_data(groups)) {
    ResultTable summary;
    summary.data = data;
    std::vector<const EvalRecord*> evaluations;
    for (const RunGroup& group : groups) {
      for (const RunRecord* run : group.runs) {
        if (const EvalRecord* evaluation = final_evaluation(*run, data)) evaluations.push_back(evaluation);
      }
    }
    summary.columns = columns_of(evaluations);
    bool timed = false;
    for (const RunGroup& group : groups) {
      for (const RunRecord* run : group.runs) timed |= run->steps.find("timing_s/step") != nullptr;
    }
    if (timed)
      summary.columns.push_back({kStepSeconds, "s/step", "seconds per training step, validation left out", false});
    summary.problems = evaluations[0]->problems;
    summary.samples = evaluations[0]->samples;
    summary.temperature = evaluations[0]->temperature;
    summary.interval = evaluations[0]->interval;
    for (const RunGroup& group : groups) {
      SummaryRow row{&group, {}};
      bool any = false;
      for (const SummaryColumn& column : summary.columns) {
        row.cells.push_back(cell_of(group, data, column.key));
        any |= !row.cells.back().values.empty();
      }
      if (any) summary.rows.push_back(std::move(row));
    }
    compare(summary, groups);
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::string unclaimed_sentence(const ResultTable& summary) {
  if (summary.unclaimed == 0) return "";
  return str("No claim about ", summary.unclaimed, summary.unclaimed == 1 ? " other difference" : " other differences",
             ": neither two common seeds nor answers per problem to pair.");
}

std::string ceiling_sentence(const ResultTable& summary) {
  constexpr double kCeiling = 0.99;
  size_t trained = 0;
  for (const SummaryRow& row : summary.rows) {
    if (!row.group->trained) continue;
    ++trained;
    if (row.cells.empty() || summary.columns[0].key != "greedy" || !(row.cells[0].mean >= kCeiling)) return "";
  }
  return trained < 2
             ? ""
             : "Greedy accuracy is at its ceiling for every method: these problems cannot tell them apart there.";
}

std::string cell_number(double value, bool share) {
  if (std::isnan(value)) return "-";
  if (share) return fixed(100 * value, 1);
  double size = std::fabs(value);
  return fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

std::string summary_table(const std::vector<ResultTable>& summaries) {
  std::string out;
  for (const ResultTable& summary : summaries) {
    bool several = false;
    for (const SummaryRow& row : summary.rows) several |= row.group->runs.size() > 1;
    if (!out.empty()) out += "\n";
    out += str(summary.data.empty() ? "evaluation" : printable(short_path(summary.data, 1)), ": ",
               grouped(summary.problems), " problems");
    if (summary.samples > 0) out += str(", ", summary.samples, " samples each");
    if (!std::isnan(summary.temperature)) out += str(" at temperature ", summary.temperature);
    out += several ? "; mean +- std over seeds\n\n" : "\n\n";

    std::vector<std::vector<std::string>> lines(1);
    lines[0].push_back("");
    for (const SummaryColumn& column : summary.columns) lines[0].push_back(column.title + (column.share ? " %" : ""));
    for (const SummaryRow& row : summary.rows) {
      std::vector<std::string> line = {printable(row.group->title, 40)};
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const SummaryCell& cell = row.cells[c];
        bool share = summary.columns[c].share;
        std::string text = cell_number(cell.mean, share);
        if (!std::isnan(cell.deviation)) text += " +- " + cell_number(cell.deviation, share);
        line.push_back(text);
      }
      lines.push_back(std::move(line));
    }
    std::vector<size_t> width(summary.columns.size() + 1);
    for (const auto& line : lines) {
      for (size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], line[c].size());
    }
    for (const auto& line : lines) {
      out += "  " + pad_right(line[0], width[0]);
      for (size_t c = 1; c < line.size(); ++c) out += "   " + pad_left(line[c], width[c]);
      out += "\n";
    }
    if (!summary.differences.empty()) out += "\n";
    for (const Difference& d : summary.differences) out += "  " + printable(d.sentence, 400) + "\n";
    std::string ceiling = ceiling_sentence(summary);
    if (!ceiling.empty()) out += "  " + ceiling + "\n";
    std::string rest = unclaimed_sentence(summary);
    if (!rest.empty()) out += str(summary.differences.empty() ? "\n" : "", "  ", rest, "\n");
  }
  return out;
}

std::string summary_table(const std::vector<std::string>& paths) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::vector<RunGroup> groups = group_runs(runs);
  std::vector<ResultTable> summaries = results_of(groups);
  return summaries.empty() ? "no evaluation in these runs\n" : summary_table(summaries);
}

}  // namespace ucas

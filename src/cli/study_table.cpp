#include "cli/study_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "report/summary.h"
#include "stats/samples.h"

namespace ucas {

namespace {

constexpr int64_t kDraws = 2000;
constexpr double kLevel = 0.95;

// "pass@16:math500" in parts.
struct Column {
  std::string name;    // "pass"
  int64_t k = 0;       // 16
  std::string source;  // "math500", "macro", "" = all problems
};

Column parse_column(const std::string& text) {
  Column column;
  std::string metric = text.substr(0, text.find(':'));
  if (metric.size() < text.size()) column.source = text.substr(metric.size() + 1);
  size_t at = metric.find('@');
  column.name = metric.substr(0, at);
  static const std::set<std::string> kPlain = {"greedy", "entropy", "length", "truncated", "unparseable"};
  if (at == std::string::npos && kPlain.contains(column.name)) return column;
  if (at != std::string::npos && (column.name == "mean" || column.name == "pass")) {
    const char *from = metric.data() + at + 1, *to = metric.data() + metric.size();
    auto [end, error] = std::from_chars(from, to, column.k);
    if (error == std::errc() && end == to && column.k > 0) return column;
  }
  throw Error("config", str("column \"", printable(text),
                            "\": expected greedy, mean@N, pass@K, entropy, length, truncated or unparseable, alone or "
                            "with :SOURCE, :* or :macro"));
}

// The quantity of one problem; unknown where the evaluation has it not.
double problem_value(const ProblemRow& row, const Column& column) {
  if (column.name == "greedy") return row.has_greedy ? (row.greedy.verdict == "equal" ? 1.0 : 0.0) : kUnknown;
  if (row.samples == 0) return kUnknown;
  if (column.name == "mean" && column.k == row.samples) return mean_at_n({row.samples, row.correct});
  if (column.name == "pass" && column.k <= row.samples) return pass_at_k({row.samples, row.correct}, column.k);
  return kUnknown;
}

double mean_of_source(const EvalRecord& e, const Column& column, const std::string& source) {
  std::vector<double> values;
  for (const ProblemRow& row : e.rows) {
    if (!source.empty() && row.source != source) continue;
    double value = problem_value(row, column);
    if (!std::isnan(value)) values.push_back(value);
  }
  return mean_of(values);
}

std::vector<std::string> sources_of(const EvalRecord& e) {
  std::vector<std::string> sources;
  for (const ProblemRow& row : e.rows) {
    if (std::ranges::find(sources, row.source) == sources.end()) sources.push_back(row.source);
  }
  return sources;
}

double at(const std::vector<FigureAt>& list, int64_t k) {
  auto found = std::ranges::find(list, k, &FigureAt::k);
  return found == list.end() ? kUnknown : found->share.value;
}

double overall(const EvalRecord& e, const Column& column) {
  double stored = kUnknown;
  if (column.name == "greedy") stored = e.greedy.value;
  if (column.name == "entropy") stored = e.entropy;
  if (column.name == "length") stored = e.length;
  if (column.name == "truncated") stored = e.truncated;
  if (column.name == "unparseable") stored = e.unparseable;
  if (column.name == "mean") stored = at(e.mean_at, column.k);
  if (column.name == "pass") stored = at(e.pass_at, column.k);
  return std::isnan(stored) ? mean_of_source(e, column, "") : stored;
}

// Two-sided p of the t-test that the mean of `values` is 0.
double t_test(const std::vector<double>& values) {
  auto n = static_cast<double>(values.size());
  double deviation = deviation_of(values), mean = mean_of(values);
  if (std::isnan(deviation)) return kUnknown;
  if (deviation == 0) return mean == 0 ? 1.0 : 0.0;
  double t = mean / (deviation / std::sqrt(n)), freedom = n - 1;
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

// Differences of the problems common to all pairs: [seed][problem], problems of one source side by side.
struct Differences {
  std::vector<std::vector<double>> each;
  std::vector<size_t> strata;  // problems of each source, where the mean of sources is asked for; else all of them
};

std::string key_of(const ProblemRow& row) { return row.source + "\n" + row.id; }

Differences differences(const std::vector<const EvalRecord*>& a, const std::vector<const EvalRecord*>& b,
                        const Column& column) {
  std::vector<std::map<std::string, double>> each(a.size());
  for (size_t s = 0; s < a.size(); ++s) {
    std::map<std::string, double> first;
    for (const ProblemRow& row : a[s]->rows) first[key_of(row)] = problem_value(row, column);
    for (const ProblemRow& row : b[s]->rows) {
      auto found = first.find(key_of(row));
      if (found == first.end()) continue;
      double value = problem_value(row, column) - found->second;
      if (!std::isnan(value)) each[s][found->first] = value;
    }
  }
  Differences d{std::vector<std::vector<double>>(a.size()), {}};
  const bool macro = column.source == "macro";
  std::string last;
  for (const auto& [id, value] : each[0]) {
    std::string source = id.substr(0, id.find('\n'));
    if (!macro && !column.source.empty() && source != column.source) continue;
    if (!std::ranges::all_of(each, [&](const auto& seed) { return seed.contains(id); })) continue;
    if (d.strata.empty() || (macro && source != last)) d.strata.push_back(0);
    ++d.strata.back();
    last = source;
    for (size_t s = 0; s < each.size(); ++s) d.each[s].push_back(each[s].at(id));
  }
  return d;
}

// Percentile bootstrap of the mean. Seeds and problems are drawn anew in each draw, the same problems for all seeds,
// since every run answered the same ones; problems within their source where the mean of sources is asked for.
Interval bootstrap_both(const Differences& d, uint64_t seed) {
  const size_t seeds = d.each.size();
  Rng rng(seed, 0x57d1);
  auto pick = [&](size_t n) { return static_cast<size_t>(rng.below(static_cast<int64_t>(n))); };
  std::vector<double> means, sum(seeds);
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    std::ranges::fill(sum, 0.0);
    size_t first = 0;
    for (size_t count : d.strata) {
      double weight = 1 / (static_cast<double>(count) * static_cast<double>(d.strata.size()));
      for (size_t i = 0; i < count; ++i) {
        size_t problem = first + pick(count);
        for (size_t s = 0; s < seeds; ++s) sum[s] += weight * d.each[s][problem];
      }
      first += count;
    }
    double total = 0;
    for (size_t s = 0; s < seeds; ++s) total += sum[pick(seeds)];
    means.push_back(total / static_cast<double>(seeds));
  }
  std::ranges::sort(means);
  auto rank = [&](double share) { return means[static_cast<size_t>(share * static_cast<double>(kDraws - 1) + 0.5)]; };
  return {rank((1 - kLevel) / 2), rank((1 + kLevel) / 2)};
}

// A few columns that say enough, of what the first evaluation has.
std::vector<std::string> default_columns(const EvalRecord& e) {
  std::vector<std::string> columns;
  if (e.greedy.known()) columns.push_back("greedy");
  if (!e.mean_at.empty()) {
    bool sixteen = !std::isnan(at(e.mean_at, 16));
    columns.push_back(str("mean@", sixteen ? 16 : e.mean_at.back().k));
  }
  for (int64_t k : {4, 16, 64}) {
    if (!std::isnan(at(e.pass_at, k))) columns.push_back(str("pass@", k));
  }
  if (!e.pass_at.empty() && e.pass_at.back().k > 1) {
    std::string last = str("pass@", e.pass_at.back().k);
    if (std::ranges::find(columns, last) == columns.end()) columns.push_back(last);
  }
  for (const char* name : {"entropy", "length", "truncated"}) {
    if (!std::isnan(evaluation_value(e, name))) columns.push_back(name);
  }
  return columns;
}

std::vector<std::string> expand_all(const std::vector<std::string>& columns, const std::vector<std::string>& sources) {
  std::vector<std::string> out;
  for (const std::string& column : columns) {
    for (std::string& one : expand_column(column, sources)) out.push_back(std::move(one));
  }
  return out;
}

// The runs of a row with their evaluation.
struct Answered {
  std::vector<const RunRecord*> runs;
  std::vector<const EvalRecord*> evaluations;
};

Answered answered(const RunGroup& group, const std::string& name) {
  Answered out;
  for (const RunRecord* run : group.runs) {
    auto found = std::ranges::find(run->evaluations, name, &EvalRecord::name);
    if (found == run->evaluations.end()) continue;
    out.runs.push_back(run);
    out.evaluations.push_back(&*found);
  }
  return out;
}

// Pairs by seed; one run without a partner of its seed (the untrained base) stands beside every seed of the other row.
PairedRuns compare_rows(const Answered& a, const Answered& b, const std::string& column, uint64_t seed) {
  std::vector<const EvalRecord*> first, second;
  for (size_t i = 0; i < a.runs.size(); ++i) {
    for (size_t j = 0; j < b.runs.size(); ++j) {
      if (a.runs[i]->seed < 0 || a.runs[i]->seed != b.runs[j]->seed) continue;
      first.push_back(a.evaluations[i]);
      second.push_back(b.evaluations[j]);
    }
  }
  const bool one = b.runs.size() == 1 && b.runs[0]->method.empty();
  if (first.size() < a.runs.size() && one) {
    first = a.evaluations;
    second.assign(a.evaluations.size(), b.evaluations[0]);
  }
  return compare_pairs(first, second, column, seed);
}

}  // namespace

bool PairedRuns::told_apart() const {
  const bool t = over_seeds.bounded(), b = has_bootstrap;
  if (!t && !b) return false;
  const bool t_apart = over_seeds.low > 0 || over_seeds.high < 0;
  const bool b_apart = over_both.low > 0 || over_both.high < 0;
  return (!t || t_apart) && (!b || b_apart);
}

double evaluation_value(const EvalRecord& e, const std::string& text) {
  Column column = parse_column(text);
  if (column.source.empty()) return overall(e, column);
  if (column.source != "macro") return mean_of_source(e, column, column.source);
  std::vector<double> each;
  for (const std::string& source : sources_of(e)) each.push_back(mean_of_source(e, column, source));
  return mean_of(each);
}

std::vector<std::string> expand_column(const std::string& column, const std::vector<std::string>& sources) {
  parse_column(column);
  if (!column.ends_with(":*")) return {column};
  std::vector<std::string> out;
  for (const std::string& source : sources) out.push_back(column.substr(0, column.size() - 1) + source);
  return out;
}

PairedRuns compare_pairs(const std::vector<const EvalRecord*>& a, const std::vector<const EvalRecord*>& b,
                         const std::string& text, uint64_t seed) {
  UCAS_CHECK(a.size() == b.size(), "pairs are pairs");
  PairedRuns out;
  std::vector<double> changes;
  for (size_t i = 0; i < a.size(); ++i) {
    double value = evaluation_value(*b[i], text) - evaluation_value(*a[i], text);
    if (!std::isnan(value)) changes.push_back(value);
  }
  out.seeds = static_cast<int64_t>(changes.size());
  out.over_seeds = mean_estimate(changes);
  out.p = t_test(changes);
  if (a.empty() || changes.size() < a.size()) return out;
  Differences d = differences(a, b, parse_column(text));
  out.problems = static_cast<int64_t>(d.each[0].size());
  if (out.problems < 2) return out;
  out.over_both = bootstrap_both(d, seed);
  out.has_bootstrap = true;
  return out;
}

StudyTable study_table(const std::vector<std::string>& paths, const TableOptions& options) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::vector<RunGroup> groups = group_runs(runs);
  StudyTable table;
  table.options = options;
  std::vector<Answered> rows;
  for (const RunGroup& group : groups) {
    rows.push_back(answered(group, options.eval));
    if (rows.back().runs.empty()) {
      throw Error("empty", str(group.runs[0]->path, ": no evaluation eval/", options.eval, ".json"));
    }
  }
  if (rows.empty()) throw Error("empty", "no runs, no table");
  const EvalRecord& first = *rows[0].evaluations[0];
  table.problems = first.problems;
  table.samples = first.samples;
  table.temperature = first.temperature;
  std::vector<std::string> sources = sources_of(first);
  table.columns = expand_all(options.columns.empty() ? default_columns(first) : options.columns, sources);
  table.compare = expand_all(options.compare, sources);
  if (options.compare.empty()) {
    for (const std::string& column : table.columns) {
      if (column.starts_with("greedy") || column.starts_with("mean@")) table.compare.push_back(column);
    }
  }
  size_t reference = groups.size();
  for (size_t i = groups.size(); i-- > 0;) {
    if (options.reference.empty() ? groups[i].trained : groups[i].title == options.reference) reference = i;
  }
  if (reference < groups.size()) table.reference = groups[reference].title;
  for (size_t i = 0; i < groups.size(); ++i) {
    StudyRow row{groups[i].title, groups[i].trained, {}, {}, {}};
    for (const RunRecord* run : rows[i].runs) row.seeds.push_back(run->seed);
    for (const std::string& column : table.columns) {
      StudyCell cell;
      for (const EvalRecord* e : rows[i].evaluations) cell.values.push_back(evaluation_value(*e, column));
      cell.mean = mean_of(cell.values);
      cell.deviation = deviation_of(cell.values);
      row.cells.push_back(std::move(cell));
    }
    for (const std::string& column : table.compare) {
      if (i == reference || reference == groups.size()) break;
      row.against.push_back(compare_rows(rows[reference], rows[i], column, options.seed));
    }
    table.rows.push_back(std::move(row));
    std::vector<std::pair<std::string, std::string>> settings;
    for (const std::string& axis : options.axes) settings.emplace_back(axis, groups[i].runs[0]->setting(axis));
    table.settings.push_back(std::move(settings));
  }
  return table;
}

}  // namespace ucas

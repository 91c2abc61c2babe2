#include "evaluate/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/str.h"
#include "stats/intervals.h"
#include "stats/macro.h"
#include "stats/paired.h"
#include "stats/samples.h"

namespace ucas {

namespace {

// ---- the problems that all runs answered, as numbers

using Key = std::tuple<std::string, std::string, int64_t>;  // source, id, which of those with this id

std::map<Key, const ComparedProblem*> by_key(const ComparedRun& run) {
  std::map<std::pair<std::string, std::string>, int64_t> seen;
  std::map<Key, const ComparedProblem*> out;
  for (const ComparedProblem& p : run.problems) out[{p.source, p.id, seen[{p.source, p.id}]++}] = &p;
  return out;
}

struct Answers {
  std::vector<std::string> sources;
  // [source][problem], for each [group][run]
  std::vector<std::vector<std::vector<std::vector<const ComparedProblem*>>>> of;
  int64_t left_out = 0, changed = 0;
};

Answers common_answers(std::span<const ComparedGroup> groups) {
  Answers out;
  std::vector<std::vector<std::map<Key, const ComparedProblem*>>> maps;
  std::set<Key> all;
  for (const ComparedGroup& group : groups) {
    auto& list = maps.emplace_back();
    for (const ComparedRun& run : group.runs) {
      list.push_back(by_key(run));
      for (const auto& [key, ignored] : list.back()) all.insert(key);
    }
    out.of.emplace_back(group.runs.size());
  }
  std::map<std::pair<std::string, std::string>, int64_t> seen;
  int64_t kept = 0;
  for (const ComparedProblem& first : groups[0].runs[0].problems) {
    const Key key = {first.source, first.id, seen[{first.source, first.id}]++};
    bool common = true, changed = false;
    for (const auto& list : maps) {
      for (const auto& map : list) {
        const auto found = map.find(key);
        common = common && found != map.end();
        changed = changed || (found != map.end() && found->second->content != first.content);
      }
    }
    if (!common) continue;
    ++kept;
    out.changed += changed;
    auto place =
        static_cast<size_t>(std::find(out.sources.begin(), out.sources.end(), first.source) - out.sources.begin());
    if (place == out.sources.size()) {
      out.sources.push_back(first.source);
      for (auto& runs : out.of) {
        for (auto& sets : runs) sets.emplace_back();
      }
    }
    for (size_t g = 0; g < maps.size(); ++g) {
      for (size_t r = 0; r < maps[g].size(); ++r) out.of[g][r][place].push_back(maps[g][r].at(key));
    }
  }
  out.left_out = static_cast<int64_t>(all.size()) - kept;
  return out;
}

// ---- metrics

struct Metric {
  std::string key;
  int64_t k = 0;  // 0: greedy, -1: mean, else pass@k
};

double value_of(const ComparedProblem& p, int64_t k) {
  if (k == 0) return p.greedy < 0 ? kUnknown : static_cast<double>(p.greedy);
  if (p.samples < std::max<int64_t>(k, 1)) return kUnknown;
  return k < 0 ? mean_at_n({p.samples, p.correct}) : pass_at_k({p.samples, p.correct}, k);
}

std::vector<Metric> metrics_of(const Answers& answers, std::vector<int64_t> ks) {
  std::set<int64_t> samples;
  bool greedy = false;
  for (const auto& group : answers.of) {
    for (const auto& run : group) {
      for (const auto& set : run) {
        for (const ComparedProblem* p : set) {
          greedy = greedy || p->greedy >= 0;
          if (p->samples > 0) samples.insert(p->samples);
        }
      }
    }
  }
  std::vector<Metric> out;
  if (greedy) out.push_back({"greedy", 0});
  if (samples.empty()) return out;
  out.push_back({samples.size() == 1 ? str("mean@", *samples.begin()) : "mean@n", -1});
  if (ks.empty()) {
    for (int64_t k : {4, 16, 64}) {
      if (k <= *samples.begin()) ks.push_back(k);
    }
    // pass@n itself has no average over draws; the next power of two below says more.
    int64_t power = 1;
    while (2 * power <= *samples.begin()) power *= 2;
    if (ks.empty() && power > 1) ks.push_back(power);
  }
  for (int64_t k : ks) {
    if (k >= 1 && k <= *samples.begin()) out.push_back({str("pass@", k), k});
  }
  return out;
}

// One metric's values, [group][run][set][problem]; an empty set is one that not every run has this metric for.
using Values = std::vector<std::vector<std::vector<std::vector<double>>>>;

Values values_of(const Answers& answers, const Metric& metric) {
  Values out;
  std::vector<char> complete(answers.sources.size(), 1);
  for (const auto& group : answers.of) {
    auto& runs = out.emplace_back();
    for (const auto& run : group) {
      auto& sets = runs.emplace_back();
      for (size_t s = 0; s < run.size(); ++s) {
        auto& values = sets.emplace_back();
        for (const ComparedProblem* p : run[s]) {
          values.push_back(value_of(*p, metric.k));
          complete[s] = complete[s] && !std::isnan(values.back());
        }
      }
    }
  }
  for (auto& runs : out) {
    for (auto& sets : runs) {
      for (size_t s = 0; s < sets.size(); ++s) {
        if (!complete[s]) sets[s].clear();
      }
    }
  }
  return out;
}

using Sets = std::vector<std::vector<double>>;  // of one run

bool all_there(const Sets& sets) {
  return std::none_of(sets.begin(), sets.end(), [](const auto& set) { return set.empty(); });
}

std::vector<double> pooled(const Sets& sets) {
  std::vector<double> out;
  for (const auto& set : sets) out.insert(out.end(), set.begin(), set.end());
  return out;
}

// Which problems a column is over: one source, or the average of the sources (macro), or all problems (micro).
struct Column {
  enum class Kind { source, macro, micro } kind = Kind::source;
  size_t source = 0;
  // The sets it is made of; none where the metric is not there for all of them.
  Sets take(const Sets& sets) const {
    if (kind == Kind::source) return sets[source].empty() ? Sets{} : Sets{sets[source]};
    if (!all_there(sets)) return {};
    return kind == Kind::macro ? sets : Sets{pooled(sets)};
  }
};

double mean_of_sets(const Sets& sets) {
  double sum = 0;
  for (const auto& set : sets) sum += mean_of(set);
  return sets.empty() ? kUnknown : sum / static_cast<double>(sets.size());
}

// ---- cells and contrasts

class Table {
 public:
  Table(const Values& values, const std::vector<Column>& columns, bool greedy, std::span<const ComparedGroup> groups,
        const CompareOptions& options)
      : values_(values), columns_(columns), greedy_(greedy), groups_(groups), options_(options) {}

  ComparedCell cell(size_t group, const Column& column) const {
    ComparedCell out;
    std::vector<double> each;
    for (const Sets& run : values_[group]) each.push_back(mean_of_sets(column.take(run)));
    out.value.value = mean_of(each);
    out.deviation = deviation_of(each);
    if (std::isnan(out.value.value)) return out;
    if (each.size() > 1) {
      out.value = mean_estimate(each);
      out.value.low = std::max(0.0, out.value.low);
      out.value.high = std::min(1.0, out.value.high);
      return out;
    }
    const Sets sets = column.take(values_[group][0]);
    const auto seed = static_cast<uint64_t>(options_.seed);
    const bool exact = greedy_ && sets.size() == 1;
    const double right = exact ? std::round(mean_of(sets[0]) * static_cast<double>(sets[0].size())) : 0;
    const Interval interval =
        exact ? clopper_pearson(static_cast<int64_t>(right), static_cast<int64_t>(sets[0].size()), options_.level)
              : macro_mean(sets, seed, options_.level, options_.draws).interval;
    out.value.low = interval.low;
    out.value.high = interval.high;
    return out;
  }

  Contrast contrast(size_t group, const Column& column) const {
    const auto pairs = pairs_of(group);
    if (pairs.size() > 1) return over_seeds(pairs, group, column);
    const bool averaged = pairs.empty();
    const Sets a = column.take(averaged ? average(0) : values_[0][pairs[0].first]);
    const Sets b = column.take(averaged ? average(group) : values_[group][pairs[0].second]);
    Contrast out = a.empty() || b.empty() ? Contrast{} : over_problems(a, b, !averaged);
    if (averaged && !out.basis.empty()) out.basis += "; the seeds differ: each problem averaged over the runs";
    return out;
  }

 private:
  // Runs to be set against each other: by seed; one run of the first group stands for every seed.
  std::vector<std::pair<size_t, size_t>> pairs_of(size_t group) const {
    const auto &from = groups_[0].runs, &to = groups_[group].runs;
    std::vector<std::pair<size_t, size_t>> pairs;
    if (from.size() == 1) {
      for (size_t r = 0; r < to.size(); ++r) pairs.emplace_back(0, r);
      return pairs;
    }
    for (size_t a = 0; a < from.size(); ++a) {
      for (size_t b = 0; b < to.size(); ++b) {
        if (from[a].seed >= 0 && from[a].seed == to[b].seed) {
          pairs.emplace_back(a, b);
          break;
        }
      }
    }
    return pairs;
  }

  Contrast over_seeds(const std::vector<std::pair<size_t, size_t>>& pairs, size_t group, const Column& column) const {
    Contrast out;
    std::vector<double> changes;
    for (auto [a, b] : pairs) {
      const double change = mean_of_sets(column.take(values_[group][b])) - mean_of_sets(column.take(values_[0][a]));
      if (!std::isnan(change)) changes.push_back(change);
    }
    if (changes.size() < 2) return out;
    out.change = mean_estimate(changes);
    out.change.low = std::max(-1.0, out.change.low);
    out.change.high = std::min(1.0, out.change.high);
    out.p = student_p(changes);
    out.basis = str(changes.size(), values_[0].size() == 1 ? " seeds against one run" : " seeds, paired",
                    ", t interval and test");
    return out;
  }

  Contrast over_problems(const Sets& a, const Sets& b, bool yes_or_no) const {
    Contrast out;
    const auto seed = static_cast<uint64_t>(options_.seed);
    if (greedy_ && yes_or_no && a.size() == 1) {
      const auto n = static_cast<int64_t>(a[0].size());
      out.gained = out.lost = 0;
      for (size_t i = 0; i < a[0].size(); ++i) {
        out.gained += b[0][i] > a[0][i];
        out.lost += b[0][i] < a[0][i];
      }
      out.change = paired_share_difference(out.gained, out.lost, n);
      out.p = mcnemar(out.gained, out.lost);
      out.basis = "McNemar's exact test";
      return out;
    }
    std::vector<PairedSet> sets;
    for (size_t s = 0; s < a.size(); ++s) sets.push_back({a[s], b[s]});
    const PairedDifference d = paired_macro_difference(sets, seed, options_.level, options_.draws);
    out.change = {d.mean, d.interval.low, d.interval.high};
    if (std::all_of(sets.begin(), sets.end(), [](const PairedSet& set) { return set.a == set.b; })) {
      out.change.high = unseen(sets);
      out.change.low = -out.change.high;
    }
    out.p = d.p;
    out.basis = "paired bootstrap and sign-flip test";
    return out;
  }

  // Where no problem differs a bootstrap has no width and would feign certainty: the share of problems that may differ
  // all the same (Clopper-Pearson), by at most 1 each.
  double unseen(const std::vector<PairedSet>& sets) const {
    double sum = 0;
    for (const PairedSet& set : sets)
      sum += clopper_pearson(0, static_cast<int64_t>(set.a.size()), options_.level).high;
    return sum / static_cast<double>(sets.size());
  }

  Sets average(size_t group) const {
    Sets out = values_[group][0];
    const auto runs = static_cast<double>(values_[group].size());
    for (size_t s = 0; s < out.size(); ++s) {
      for (size_t i = 0; i < out[s].size(); ++i) {
        out[s][i] = 0;
        for (const Sets& run : values_[group]) out[s][i] += run[s][i] / runs;
      }
    }
    return out;
  }

  const Values& values_;
  const std::vector<Column>& columns_;
  bool greedy_;
  std::span<const ComparedGroup> groups_;
  const CompareOptions& options_;
};

void correct(ComparedMetric& metric, double level) {
  std::vector<double> p;
  for (const auto& row : metric.contrast) {
    for (const Contrast& c : row) p.push_back(c.p);
  }
  metric.comparisons = std::count_if(p.begin(), p.end(), [](double value) { return std::isfinite(value); });
  const std::vector<double> adjusted = holm(p);
  size_t at = 0;
  for (auto& row : metric.contrast) {
    for (Contrast& c : row) {
      c.p_holm = adjusted[at++];
      const bool excludes = c.change.bounded() && (c.change.low > 0 || c.change.high < 0);
      c.told_apart = excludes && c.p_holm <= 1 - level;
    }
  }
}

// ---- settings

// Those under which a difference of figures may be one of settings, not of models.
bool matters(const std::string& key) { return key != "seed" && !key.starts_with("seed "); }

// What each group recorded under one key; a group may hold several values (runs of several seeds).
using Recorded = std::vector<std::pair<std::string, std::set<std::string>>>;

std::string told(const Recorded& list) {
  std::vector<std::string> parts;
  for (const auto& [title, values] : list) {
    const std::vector<std::string> all(values.begin(), values.end());
    parts.push_back(str(printable(title, 40), " ", printable(join(all, " and "), 120)));
  }
  return join(parts, ", ");
}

void compare_settings(std::span<const ComparedGroup> groups, Comparison& out) {
  std::vector<std::string> keys;
  std::map<std::string, Recorded> recorded;
  for (const ComparedGroup& group : groups) {
    for (const ComparedRun& run : group.runs) {
      for (const auto& [key, value] : run.settings) {
        if (!recorded.contains(key)) keys.push_back(key);
        Recorded& list = recorded[key];
        if (list.empty() || list.back().first != group.title) list.push_back({group.title, {}});
        list.back().second.insert(value);
      }
    }
  }
  std::vector<std::string> unlike;
  std::map<std::string, std::vector<std::string>> unknown;  // group -> what it does not record
  for (const std::string& key : keys) {
    const Recorded& list = recorded[key];
    for (const ComparedGroup& group : groups) {
      const bool has = std::any_of(list.begin(), list.end(), [&](const auto& g) { return g.first == group.title; });
      if (!has) unknown[group.title].push_back(key);
    }
    const bool differ =
        std::any_of(list.begin(), list.end(), [&](const auto& g) { return g.second != list[0].second; });
    if (!differ) continue;
    out.differing.push_back(str(key, ": ", told(list)));
    if (matters(key)) unlike.push_back(key);
  }
  if (!unlike.empty()) {
    out.warnings.push_back(str("not like for like: ", join(unlike, ", "), unlike.size() == 1 ? " differs" : " differ",
                               "; a difference below may be one of settings and not of models"));
  }
  for (const auto& [title, missing] : unknown) {
    out.warnings.push_back(
        str(printable(title, 40), " does not record ", join(missing, ", "), ": whether these agree is not known"));
  }
}

void warn_of_problems(const Answers& answers, Comparison& out) {
  if (answers.left_out > 0) {
    out.warnings.push_back(str(grouped(answers.left_out), answers.left_out == 1 ? " problem" : " problems",
                               " that not every run answered ", answers.left_out == 1 ? "is" : "are", " left out"));
  }
  if (answers.changed > 0) {
    out.warnings.push_back(str(grouped(answers.changed), answers.changed == 1 ? " problem has" : " problems have",
                               " one id but different questions or answers: the data differ"));
  }
}

}  // namespace

Comparison compare_models(std::span<const ComparedGroup> groups, const CompareOptions& options) {
  UCAS_CHECK(!groups.empty() && !groups[0].runs.empty(), "something to compare");
  Comparison out;
  out.options = options;
  const Answers answers = common_answers(groups);
  if (answers.sources.empty()) {
    throw Error("empty", "the runs have no problem in common (by source and id); nothing can be compared");
  }
  for (const ComparedGroup& group : groups) out.groups.push_back(group.title);
  std::vector<Column> columns;
  int64_t all = 0;
  for (size_t s = 0; s < answers.sources.size(); ++s) {
    const auto n = static_cast<int64_t>(answers.of[0][0][s].size());
    out.sets.push_back({answers.sources[s], answers.sources[s], n});
    columns.push_back({Column::Kind::source, s});
    all += n;
  }
  if (columns.size() > 1) {
    out.sets.push_back({"macro", "average", all});
    out.sets.push_back({"micro", "all", all});
    columns.push_back({Column::Kind::macro, 0});
    columns.push_back({Column::Kind::micro, 0});
  }
  compare_settings(groups, out);
  warn_of_problems(answers, out);
  for (const Metric& metric : metrics_of(answers, options.ks)) {
    const Values values = values_of(answers, metric);
    const Table table(values, columns, metric.k == 0, groups, options);
    ComparedMetric& into = out.metrics.emplace_back();
    into.key = metric.key;
    into.title = metric.k == 0 ? "greedy pass@1" : metric.key;
    for (size_t g = 0; g < groups.size(); ++g) {
      auto& cells = into.cell.emplace_back();
      auto& contrasts = into.contrast.emplace_back();
      for (const Column& column : columns) {
        cells.push_back(table.cell(g, column));
        if (g > 0) contrasts.push_back(table.contrast(g, column));
      }
    }
    correct(into, options.level);
  }
  return out;
}

}  // namespace ucas

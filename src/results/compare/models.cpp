#include "results/compare/models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "results/compare/answers.h"

namespace ucas {

namespace {

// ---- the problems that all runs answered

struct CommonProblems {
  std::vector<AnswerGroup> groups;  // with these problems only, in order of the first run
  std::vector<std::string> sources;
  int64_t left_out = 0, changed = 0;
};

CommonProblems common_problems(std::span<const AnswerGroup> groups) {
  using Map = std::map<ProblemKey, const ProblemAnswers*>;
  CommonProblems out;
  std::vector<std::pair<RunAnswers*, Map>> runs;
  std::set<ProblemKey> all;
  for (const AnswerGroup& group : groups) {
    AnswerGroup& copy = out.groups.emplace_back(AnswerGroup{group.title, group.trained, {}});
    for (const RunAnswers& run : group.runs) {
      copy.runs.push_back({run.name, run.label, {}, run.figures, run.settings});
    }
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t r = 0; r < groups[g].runs.size(); ++r) {
      runs.emplace_back(&out.groups[g].runs[r], by_key(groups[g].runs[r]));
      for (const auto& [key, ignored] : runs.back().second) all.insert(key);
    }
  }
  std::map<std::pair<std::string, std::string>, int64_t> seen;
  int64_t kept = 0;
  for (const ProblemAnswers& first : groups[0].runs[0].problems) {
    const ProblemKey key = {first.source, first.id, seen[{first.source, first.id}]++};
    if (!std::ranges::all_of(runs, [&](const auto& run) { return run.second.contains(key); })) continue;
    ++kept;
    out.changed +=
        std::ranges::any_of(runs, [&](const auto& run) { return run.second.at(key)->content != first.content; });
    for (auto& [run, map] : runs) run->problems.push_back(*map.at(key));
  }
  if (kept > 0) out.sources = sources_of(out.groups[0].runs[0]);
  out.left_out = static_cast<int64_t>(all.size()) - kept;
  return out;
}

// ---- metrics

std::vector<Quantity> quantities_of(const std::vector<AnswerGroup>& groups, std::vector<int64_t> ks, size_t& quoted) {
  std::vector<const RunAnswers*> runs;
  std::set<int64_t> samples;
  for (const AnswerGroup& group : groups) {
    for (const RunAnswers& run : group.runs) {
      runs.push_back(&run);
      for (const ProblemAnswers& p : run.problems) {
        if (p.samples > 0) samples.insert(p.samples);
      }
    }
  }
  std::vector<Quantity> out = quoted_quantities(runs);
  quoted = out.size();
  if (samples.empty()) return out;
  if (ks.empty()) {
    for (int64_t k : {4, 16, 64}) {
      if (k <= *samples.begin()) ks.push_back(k);
    }
    // pass@n itself has no average over subsets; the next power of two below says more.
    int64_t power = 1;
    while (2 * power <= *samples.begin()) power *= 2;
    if (ks.empty() && power > 1) ks.push_back(power);
  }
  for (int64_t k : ks) {
    if (k >= 1 && k <= *samples.begin()) out.push_back(parse_quantity(str("pass@", k)));
  }
  return out;
}

// Sources for which every problem of every run has it: a mean over some of them would be another figure.
std::set<std::string> complete_sources(const CommonProblems& common, const Quantity& quantity) {
  std::set<std::string> complete(common.sources.begin(), common.sources.end());
  for (const AnswerGroup& group : common.groups) {
    for (const RunAnswers& run : group.runs) {
      for (const ProblemAnswers& p : run.problems) {
        if (std::isnan(value_of(p, quantity))) complete.erase(p.source);
      }
    }
  }
  return complete;
}

ComparedMetric compare_metric(const CommonProblems& common, Quantity quantity, const std::vector<ComparedSet>& sets,
                              const CompareOptions& options) {
  ComparedMetric out;
  out.quantity = quantity;
  out.key = quantity.text();
  out.title = metric_title(out.key);
  const std::set<std::string> complete = complete_sources(common, quantity);
  for (size_t g = 0; g < common.groups.size(); ++g) {
    auto& cells = out.cell.emplace_back(sets.size());
    auto& contrasts = out.contrast.emplace_back(g > 0 ? sets.size() : 0);
    for (size_t s = 0; s < sets.size(); ++s) {
      const bool one = s < common.sources.size();
      if (one ? !complete.contains(sets[s].name) : complete.size() < common.sources.size()) continue;
      quantity.scope = sets.size() == 1 || sets[s].name == "micro" ? "" : sets[s].name;
      cells[s] = estimate(common.groups[g], quantity, options);
      if (g > 0) contrasts[s] = contrast(common.groups[0], common.groups[g], quantity, options);
    }
  }
  return out;
}

// The metrics of one family have their p corrected together.
void correct_together(std::span<ComparedMetric> metrics, double level) {
  std::vector<Contrast*> family;
  std::vector<std::string> names;
  for (ComparedMetric& metric : metrics) {
    names.push_back(metric.title);
    for (auto& row : metric.contrast) {
      for (Contrast& c : row) family.push_back(&c);
    }
  }
  const int64_t comparisons = correct(family, level);
  for (ComparedMetric& metric : metrics) {
    metric.comparisons = comparisons;
    metric.family = join(names, " and ");
  }
}

// ---- settings

// Those under which a difference of figures may be one of settings, not of models.
bool matters(const std::string& key) { return key != "seed" && !key.starts_with("seed "); }

// What each group recorded under one key; a group may hold several values (runs of several seeds).
using Recorded = std::vector<std::pair<std::string, std::set<std::string>>>;

std::string in_words(const Recorded& list) {
  std::vector<std::string> parts;
  for (const auto& [title, values] : list) {
    const std::vector<std::string> all(values.begin(), values.end());
    parts.push_back(str(printable(title, 40), " ", printable(join(all, " and "), 120)));
  }
  return join(parts, ", ");
}

void compare_settings(std::span<const AnswerGroup> groups, Comparison& out) {
  std::vector<std::string> keys;
  std::map<std::string, Recorded> recorded;
  for (const AnswerGroup& group : groups) {
    for (const RunAnswers& run : group.runs) {
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
    for (const AnswerGroup& group : groups) {
      const bool has = std::any_of(list.begin(), list.end(), [&](const auto& g) { return g.first == group.title; });
      if (!has) unknown[group.title].push_back(key);
    }
    const bool differ =
        std::any_of(list.begin(), list.end(), [&](const auto& g) { return g.second != list[0].second; });
    if (!differ) continue;
    out.differing.push_back(str(key, ": ", in_words(list)));
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

void warn_of_problems(const CommonProblems& common, Comparison& out) {
  if (common.left_out > 0) {
    out.warnings.push_back(str(many(common.left_out, "problem"), " that not every run answered ",
                               common.left_out == 1 ? "is" : "are", " left out"));
  }
  if (common.changed > 0) {
    out.warnings.push_back(str(grouped(common.changed), common.changed == 1 ? " problem has" : " problems have",
                               " one id but different questions or answers: the data differ"));
  }
}

}  // namespace

Comparison compare_models(std::span<const AnswerGroup> groups, const ModelsOptions& options) {
  UCAS_CHECK(!groups.empty() && !groups[0].runs.empty(), "at least one group with at least one run");
  Comparison out;
  out.options = options;
  const CommonProblems common = common_problems(groups);
  if (common.sources.empty()) {
    throw Error(ErrorKind::empty, "the runs have no problem in common (by source and id); nothing can be compared");
  }
  for (const AnswerGroup& group : groups) out.groups.push_back(group.title);
  const std::vector<ProblemAnswers>& problems = common.groups[0].runs[0].problems;
  for (const std::string& source : common.sources) {
    out.sets.push_back({source, source, std::ranges::count(problems, source, &ProblemAnswers::source)});
  }
  if (common.sources.size() > 1) {
    out.sets.push_back({"macro", "average", static_cast<int64_t>(problems.size())});
    out.sets.push_back({"micro", "all", static_cast<int64_t>(problems.size())});
  }
  compare_settings(groups, out);
  warn_of_problems(common, out);
  size_t quoted = 0;
  for (const Quantity& quantity : quantities_of(common.groups, options.ks, quoted)) {
    out.metrics.push_back(compare_metric(common, quantity, out.sets, options));
  }
  const std::span<ComparedMetric> metrics(out.metrics);
  correct_together(metrics.first(quoted), options.level);
  for (size_t m = quoted; m < metrics.size(); ++m) correct_together(metrics.subspan(m, 1), options.level);
  return out;
}

}  // namespace ucas

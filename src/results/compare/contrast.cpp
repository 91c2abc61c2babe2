#include "results/compare/contrast.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "results/compare/answers.h"
#include "results/stats/intervals.h"
#include "results/stats/paired.h"

namespace ucas {

namespace {

using Rows = RunRows;  // [run][problem]

std::vector<double> less(const std::vector<double>& b, const std::vector<double>& a) {
  std::vector<double> out;
  for (size_t i = 0; i < b.size(); ++i) out.push_back(b[i] - a[i]);
  return out;
}

std::vector<double> average(const Rows& rows) {
  std::vector<double> out(rows.empty() ? 0 : rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) out[i] += row[i] / static_cast<double>(rows.size());
  }
  return out;
}

std::vector<double> means(const Rows& rows, const std::vector<size_t>& strata) {
  std::vector<double> out;
  for (const auto& row : rows) out.push_back(mean_of_strata(row, strata));
  return out;
}

std::vector<PairedSet> sets_of(const std::vector<double>& a, const std::vector<double>& b,
                               const std::vector<size_t>& strata) {
  std::vector<PairedSet> sets;
  auto at = a.begin();
  auto other = b.begin();
  for (size_t count : strata) {
    const auto n = static_cast<std::ptrdiff_t>(count);
    sets.push_back({{at, at + n}, {other, other + n}});
    at += n;
    other += n;
  }
  return sets;
}

// Where no problem differs a bootstrap has no width and would feign certainty: the share of problems that may differ
// all the same (Clopper-Pearson), by at most 1 each.
double unseen(const std::vector<PairedSet>& sets, double level) {
  double sum = 0;
  for (const PairedSet& set : sets) sum += clopper_pearson(0, static_cast<int64_t>(set.a.size()), level).high;
  return sum / static_cast<double>(sets.size());
}

class Comparer {
 public:
  Comparer(const AnswerGroup& from, const AnswerGroup& to, const Quantity& quantity, const CompareOptions& options)
      : from_(from), to_(to), quantity_(quantity), options_(options), runs_(pair_runs(from, to)) {}

  Contrast run() {
    align_runs();
    if (runs_.kind == Pairs::one) {
      one_of_each();
    } else if (runs_.kind == Pairs::unpaired) {
      unpaired();
    } else {
      paired();
    }
    if (runs_.kind != Pairs::one && has_problems() && out_.change.bounded()) out_.basis += " and over problems";
    hold_within_shares();
    return std::move(out_);
  }

 private:
  // values_: first of `from`, then of `to`, one row a run (of pairs: one a pair).
  void align_runs() {
    std::vector<const RunAnswers*> all;
    if (runs_.pairs.empty()) {
      for (const RunAnswers& run : from_.runs) all.push_back(&run);
      for (const RunAnswers& run : to_.runs) all.push_back(&run);
      half_ = from_.runs.size();
    } else {
      for (const auto& pair : runs_.pairs) all.push_back(pair.first);
      for (const auto& pair : runs_.pairs) all.push_back(pair.second);
      half_ = runs_.pairs.size();
    }
    if (quantity_.of_problems()) {
      AlignedValues aligned = align(all, quantity_);
      values_ = std::move(aligned.value);
      strata_ = std::move(aligned.strata);
      out_.problems = aligned.problems;
    }
    if (out_.problems > 0) {
      per_run_ = means(values_, strata_);
    } else {
      for (const RunAnswers* run : all) per_run_.push_back(value_of(*run, quantity_));
    }
  }

  bool has_problems() const { return out_.problems > 0; }

  void one_of_each() {
    out_.runs = 1;
    if (!has_problems()) {
      out_.change.value = per_run_[1] - per_run_[0];
      out_.basis =
          (quantity_.of_problems() ? "one run each, no answers per problem to pair" : "one run each") + never_reached();
      return;
    }
    if (quantity_.name == "greedy" && strata_.size() == 1) return mcnemars(values_[0], values_[1]);
    const std::vector<PairedSet> sets = sets_of(values_[0], values_[1], strata_);
    const PairedDifference d = paired_macro_difference(sets, draws_seed(), options_.level, options_.draws);
    out_.change = {d.mean, d.interval.low, d.interval.high};
    if (std::ranges::all_of(sets, [](const PairedSet& set) { return set.a == set.b; })) {
      out_.change.high = unseen(sets, options_.level);
      out_.change.low = -out_.change.high;
    }
    out_.p = d.p;
    out_.basis = "paired bootstrap and sign-flip test";
  }

  void mcnemars(const std::vector<double>& a, const std::vector<double>& b) {
    out_.gained = out_.lost = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      out_.gained += b[i] > a[i];
      out_.lost += b[i] < a[i];
    }
    out_.change = paired_share_difference(out_.gained, out_.lost, out_.problems, options_.level);
    out_.p = mcnemar(out_.gained, out_.lost);
    out_.basis = "McNemar's exact test";
  }

  Rows first() const { return {values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(half_)}; }
  Rows second() const { return {values_.begin() + static_cast<std::ptrdiff_t>(half_), values_.end()}; }

  // Runs with one of several bases count as one: their luck is not independent. [cluster] of pairs
  std::vector<std::vector<size_t>> clusters(std::vector<RunLabel>& labels) const {
    std::map<std::string, std::vector<size_t>> by_base;
    for (size_t i = 0; i < half_; ++i) {
      const RunLabel &a = runs_.pairs[i].first->label, &b = runs_.pairs[i].second->label;
      labels.push_back(from_.trained ? a : b);  // an untrained run has no luck of its own
      by_base[labels.back().base].push_back(i);
    }
    std::vector<std::vector<size_t>> out;
    if (by_base.size() > 1) {
      for (auto& [base, pairs] : by_base) out.push_back(pairs);
    } else {
      for (size_t i = 0; i < half_; ++i) out.push_back({i});
    }
    return out;
  }

  void paired() {
    std::vector<RunLabel> labels;
    const std::vector<std::vector<size_t>> groups = clusters(labels);
    std::vector<double> changes;
    Rows differences;
    for (const std::vector<size_t>& pairs : groups) {
      std::vector<double> change;
      Rows rows;
      for (size_t i : pairs) {
        const double value = per_run_[half_ + i] - per_run_[i];
        if (!std::isnan(value)) change.push_back(value);
        if (has_problems()) rows.push_back(less(values_[half_ + i], values_[i]));
      }
      if (!change.empty()) changes.push_back(mean_of(change));
      out_.runs += static_cast<int64_t>(change.size());
      if (has_problems()) differences.push_back(average(rows));
    }
    const std::string unit = groups.size() < half_ ? str("bases (", half_, " runs)") : unit_of(labels);
    const std::string basis =
        str("t over ", changes.size(), " ", unit,
            out_.runs < static_cast<int64_t>(half_) ? str(", ", half_, " asked") : "", never_reached());
    if (has_problems()) {
      over_runs(two_way(differences, strata_, options_.level), changes.size() > 1, basis);
    } else {
      over_runs({mean_estimate(changes, options_.level), student_p(changes)}, changes.size() > 1, basis);
    }
    if (runs_.kind == Pairs::fixed) out_.basis += " against the untrained model";
    if (runs_.left_out > 0) out_.basis += str(", ", runs_.left_out, " runs without a partner left out");
  }

  void unpaired() {
    const auto middle = per_run_.begin() + static_cast<std::ptrdiff_t>(half_);
    const std::vector<double> a(per_run_.begin(), middle), b(middle, per_run_.end());
    out_.runs = static_cast<int64_t>(b.size());
    over_runs(has_problems() ? two_way(first(), second(), strata_, options_.level) : welch(a, b, options_.level),
              std::min(a.size(), b.size()) > 1,
              str("Welch's t over ", a.size(), " and ", b.size(), " runs, not paired", never_reached()));
  }

  // Censored values are in the mean and the test: leaving them out would compare those that arrived.
  std::string never_reached() const {
    int64_t count = 0;
    for (const AnswerGroup* group : {&from_, &to_}) {
      for (const RunAnswers& run : group->runs) count += run.censored.contains(quantity_.text());
    }
    return count == 0 ? "" : str(", ", many(count, "run"), " that never got there counted as last");
  }

  // `several`: values that could have differed.
  void over_runs(const TwoSamples& found, bool several, const std::string& basis) {
    out_.change = found.change;
    out_.p = found.p;
    out_.basis = basis;
    out_.estimable = found.change.bounded() || !several;
    if (!out_.estimable) out_.basis += ", which all differ by the same";
  }

  void hold_within_shares() {
    if (!quantity_.is_share() || !out_.change.bounded()) return;
    out_.change.low = std::max(-1.0, out_.change.low);
    out_.change.high = std::min(1.0, out_.change.high);
  }

  uint64_t draws_seed() const { return static_cast<uint64_t>(options_.seed); }

  const AnswerGroup &from_, &to_;
  const Quantity& quantity_;
  const CompareOptions& options_;
  RunPairs runs_;
  Rows values_;
  std::vector<size_t> strata_;
  std::vector<double> per_run_;
  size_t half_ = 0;
  Contrast out_;
};

}  // namespace

Contrast contrast(const AnswerGroup& from, const AnswerGroup& to, const Quantity& quantity,
                  const CompareOptions& options) {
  if (from.runs.empty() || to.runs.empty()) return {};
  return Comparer(from, to, quantity, options).run();
}

int64_t correct(std::span<Contrast* const> family, double level) {
  std::vector<double> p;
  for (const Contrast* c : family) p.push_back(c->p);
  const std::vector<double> adjusted = holm(p);
  for (size_t i = 0; i < family.size(); ++i) {
    family[i]->p_holm = adjusted[i];
    family[i]->significant = family[i]->excludes_zero() && adjusted[i] <= 1 - level;
  }
  return std::ranges::count_if(p, [](double value) { return std::isfinite(value); });
}

std::string words_of(const Contrast& c, double level) {
  if (c.significant) return c.change.value > 0 ? "higher" : "lower";
  if (!c.estimable) return "not estimable";
  const bool alone = c.excludes_zero() && c.p <= 1 - level;
  return alone ? "not significant after the correction" : "not significant";
}

std::string basis_text(const Contrast& c) {
  return c.problems > 0 ? str(c.basis, ", ", grouped(c.problems), " problems") : c.basis;
}

std::string p_texts(const Contrast& c) {
  const auto with_sign = [](double p) { return str(p < 0.001 ? "" : "= ", p_text(p)); };
  if (std::isnan(c.p)) return "p not estimable";
  return str("p ", with_sign(c.p), ", corrected ", p_text(c.p_holm));
}

std::string family_text(int64_t comparisons, double level) {
  return str("p corrected by Holm over ", many(comparisons, "comparison"), ", level ", percent(1 - level, 0));
}

Estimated estimate(const AnswerGroup& group, const Quantity& quantity, const CompareOptions& options) {
  Estimated out;
  std::vector<double> each;
  for (const RunAnswers& run : group.runs) {
    const double value = value_of(run, quantity);
    if (!std::isnan(value)) each.push_back(value);
  }
  out.value = mean_estimate(each, options.level);
  out.deviation = deviation_of(each);
  if (quantity.is_share()) out.value = within_share(out.value);
  if (each.size() != 1 || group.runs.size() != 1 || !quantity.of_problems()) return out;
  const RunAnswers* run = &group.runs[0];
  const AlignedValues aligned = align({&run, 1}, quantity);
  if (aligned.problems == 0) return out;
  std::vector<std::vector<double>> sets;
  for (PairedSet& set : sets_of(aligned.value[0], aligned.value[0], aligned.strata)) sets.push_back(std::move(set.a));
  if (quantity.name != "greedy" || sets.size() > 1) {
    const Figure mean = macro_mean(sets, static_cast<uint64_t>(options.seed), options.level, options.draws);
    out.value.low = mean.low;
    out.value.high = mean.high;
    return out;
  }
  const auto n = static_cast<int64_t>(sets[0].size());
  const auto right = static_cast<int64_t>(std::llround(mean_of(sets[0]) * static_cast<double>(n)));
  const Interval interval = clopper_pearson(right, n, options.level);
  out.value.low = interval.low;
  out.value.high = interval.high;
  return out;
}

}  // namespace ucas

#include "compare/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text/fields.h"
#include "objective/advantage/group_advantage.h"
#include "stats/calibration.h"
#include "stats/intervals.h"
#include "stats/ranks.h"
#include "stats/spread.h"

namespace ucas {

namespace {

// A factor this close to 1 is rounding: saved steps are in float32.
constexpr double kShrinkRounding = 1e-6;

struct MeanSum {
  double sum = 0;
  int64_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double mean() const { return count == 0 ? kUnknown : sum / static_cast<double>(count); }
};
using ByProblem = std::map<std::string, MeanSum>;

std::vector<double> means_of(const ByProblem& values) {
  std::vector<double> means;
  for (const auto& [problem, of] : values) means.push_back(of.mean());
  return means;
}

std::vector<double> values_of(const SignalledGroup& group, Signal signal) {
  std::vector<double> values;
  for (const SignalledResponse& o : group.responses) values.push_back(o.signal[static_cast<size_t>(signal)]);
  return values;
}

bool is_mixed(const SignalledGroup& group) {
  const auto right = std::ranges::count(group.responses, true, &SignalledResponse::right);
  return right > 0 && right < std::ssize(group.responses);
}

// Of each response: which share of its group begins as it does, is right or wrong with it, or answers as it does.
std::vector<double> shares_of(const SignalledGroup& group, RareBy by) {
  if (by == RareBy::answer) return values_of(group, Signal::self_consistency);
  if (by == RareBy::accuracy) {
    const auto n = static_cast<double>(group.responses.size());
    const auto right = static_cast<double>(std::ranges::count(group.responses, true, &SignalledResponse::right));
    std::vector<double> shares;
    for (const SignalledResponse& o : group.responses) shares.push_back((o.right ? right : n - right) / n);
    return shares;
  }
  std::map<std::string, int64_t> count;
  for (const SignalledResponse& o : group.responses) ++count[o.opening];
  std::vector<double> shares;
  for (const SignalledResponse& o : group.responses) {
    shares.push_back(static_cast<double>(count[o.opening]) / static_cast<double>(group.responses.size()));
  }
  return shares;
}

// Which of the group's responses are right and rare.
std::vector<bool> rare_of(const SignalledGroup& group, const DiagnosisOptions& options) {
  const double rare = options.rare * (1 + 1e-12);  // 0.1 is not 10 of 100
  std::vector<bool> is(group.responses.size());
  if (options.rare_by != RareBy::logprob) {
    const std::vector<double> shares = shares_of(group, options.rare_by);
    for (size_t i = 0; i < is.size(); ++i) is[i] = group.responses[i].right && shares[i] <= rare;
    return is;
  }
  const std::vector<double> logprobs = values_of(group, Signal::logprob);
  std::vector<size_t> right;
  for (size_t i = 0; i < is.size(); ++i) {
    if (group.responses[i].right && std::isfinite(logprobs[i])) right.push_back(i);
  }
  std::ranges::stable_sort(right, {}, [&](size_t i) { return logprobs[i]; });
  right.resize(static_cast<size_t>(rare * static_cast<double>(right.size())));
  for (size_t i : right) is[i] = true;
  return is;
}

// Whether rare responses are chosen by what the signal measures.
bool selects(RareBy by, Signal signal) {
  return (by == RareBy::logprob && signal == Signal::logprob) ||
         (by == RareBy::answer && signal == Signal::self_consistency) ||
         (by == RareBy::accuracy && signal == Signal::self_consistency);
}

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

// C_hat as UCAS has it: Eq. 7.
std::vector<double> standardized(std::span<const double> values) {
  const GroupAdvantageConfig config;
  return zscore(values, {}, config.eps, config.ddof);
}

// Of the mean over problems. The percentile bootstrap covers too rarely of few; z-scores have no range for redraw_mean.
Figure interval_over_problems(std::span<const double> values, const DiagnosisOptions& options) {
  if (std::ssize(values) < kFewProblems && values.size() > 1 && !constant(values)) {
    return mean_estimate(values, options.level);
  }
  const Interval interval = bootstrap_mean(values, options.seed, options.level, options.draws);
  return {mean_of(values), interval.low, interval.high};
}

std::vector<bool> right_of(const SignalledGroup& group) {
  std::vector<bool> right;
  for (const SignalledResponse& o : group.responses) right.push_back(o.right);
  return right;
}

class Diagnoser {
 public:
  Diagnoser(std::span<const SignalledGroup> groups, const DiagnosisOptions& options)
      : groups_(groups), options_(options) {
    for (const SignalledGroup& group : groups_) {
      if (!is_mixed(group)) continue;
      mixed_.push_back(&group);
      rare_.push_back(rare_of(group, options));
    }
  }
  Diagnosis run();

 private:
  void count();
  SignalDiagnosis signal(Signal signal);
  void strategies();
  void steps();
  bool is_rare(size_t g, size_t i) const { return rare_[g][i]; }

  std::span<const SignalledGroup> groups_;
  const DiagnosisOptions& options_;
  std::vector<const SignalledGroup*> mixed_;
  std::vector<std::vector<bool>> rare_;  // of mixed_: right and rare
  std::map<std::string, std::array<MeanSum, kSignals>> z_of_strategy_;
  std::map<int64_t, std::array<MeanSum, kSignals>> z_of_step_;  // of rare right responses
  Diagnosis out_;
};

Diagnosis Diagnoser::run() {
  count();
  for (size_t s = 0; s < kSignals; ++s) {
    SignalDiagnosis found = signal(static_cast<Signal>(s));
    if (found.groups > 0) out_.signals.push_back(found);
  }
  strategies();
  steps();
  return std::move(out_);
}

void Diagnoser::count() {
  out_.groups = std::ssize(groups_);
  out_.mixed = std::ssize(mixed_);
  std::map<std::string, int64_t> problems, rare_problems;
  for (size_t g = 0; g < mixed_.size(); ++g) {
    ++problems[mixed_[g]->problem];
    out_.responses += std::ssize(mixed_[g]->responses);
    for (size_t i = 0; i < rare_[g].size(); ++i) {
      if (!is_rare(g, i)) continue;
      ++out_.rare;
      ++rare_problems[mixed_[g]->problem];
    }
  }
  out_.problems = std::ssize(problems);
  out_.rare_problems = std::ssize(rare_problems);
}

SignalDiagnosis Diagnoser::signal(Signal signal) {
  SignalDiagnosis out;
  out.signal = signal;
  out.selects = selects(options_.rare_by, signal);
  const auto s = static_cast<size_t>(signal);
  std::vector<double> pooled;
  std::vector<bool> pooled_right;
  for (const SignalledGroup& group : groups_) {
    for (const SignalledResponse& o : group.responses) {
      if (!std::isfinite(o.signal[s])) continue;
      pooled.push_back(o.signal[s]);
      pooled_right.push_back(o.right);
    }
  }
  out.auroc_pooled = auroc(pooled, pooled_right);
  MeanSum area, rank;
  ByProblem right, rare;
  for (size_t g = 0; g < mixed_.size(); ++g) {
    const std::vector<double> values = values_of(*mixed_[g], signal);
    if (!all_finite(values)) continue;
    ++out.groups;
    area.add(auroc(values, right_of(*mixed_[g])));
    if (options_.rare_by == RareBy::opening || options_.rare_by == RareBy::answer) {
      const double with_share = rank_correlation(values, shares_of(*mixed_[g], options_.rare_by));
      if (std::isfinite(with_share)) rank.add(with_share);
    }
    const std::vector<double> z = standardized(values);
    for (size_t i = 0; i < z.size(); ++i) {
      const SignalledResponse& o = mixed_[g]->responses[i];
      if (!o.right) continue;
      right[mixed_[g]->problem].add(z[i]);
      z_of_strategy_[o.opening][s].add(z[i]);
      if (!is_rare(g, i)) continue;
      rare[mixed_[g]->problem].add(z[i]);
      z_of_step_[mixed_[g]->step][s].add(z[i]);
      ++out.rare;
      out.rare_over += z[i] > 0;
    }
  }
  out.auroc = area.mean();
  out.rank_with_share = rank.mean();
  if (!right.empty()) out.z_right = mean_of(means_of(right));
  if (rare.empty()) return out;
  const std::vector<double> of_problems = means_of(rare);
  out.z_rare = interval_over_problems(of_problems, options_);
  if (out.selects || out.rare < Diagnosis::kFewestRare || std::ssize(rare) < Diagnosis::kFewestProblems) return out;
  if (out.z_rare.high < 0) out.effect = RareEffect::protects;
  if (out.z_rare.low > 0) out.effect = RareEffect::shrinks;
  return out;
}

void Diagnoser::strategies() {
  std::map<std::string, StrategyDiagnosis> found;
  MeanSum right_strategies;
  for (const SignalledGroup* group : mixed_) {
    std::set<std::string> right;
    for (const SignalledResponse& o : group->responses) {
      if (o.right) right.insert(o.opening);
      StrategyDiagnosis& strategy = found[o.opening];
      strategy.opening = o.opening;
      ++strategy.responses;
      strategy.right += o.right ? 1 : 0;
    }
    right_strategies.add(static_cast<double>(right.size()));
  }
  out_.right_strategies = right_strategies.mean();
  for (auto& [opening, strategy] : found) {
    const auto responses = static_cast<double>(strategy.responses);
    strategy.share = responses / static_cast<double>(out_.responses);
    strategy.right /= responses;
    for (size_t s = 0; s < kSignals; ++s) strategy.z_right[s] = z_of_strategy_[opening][s].mean();
    out_.strategies.push_back(strategy);
  }
  std::ranges::stable_sort(out_.strategies, std::greater{}, &StrategyDiagnosis::responses);
}

void Diagnoser::steps() {
  struct Sums {
    MeanSum shrunk, rare, other;
    void add(bool is_rare, double A, double made) {
      if (!std::isfinite(made)) return;
      (is_rare ? rare : other).add(made / A);
      if (is_rare) shrunk.add(made < A * (1 - kShrinkRounding) ? 1 : 0);
    }
    StepDiagnosis::Of means() const { return {shrunk.mean(), rare.mean(), other.mean()}; }
  };
  struct StepSums {
    int64_t rare = 0, other = 0;
    Sums stage_1, all;
  };
  std::map<int64_t, StepSums> by_step;
  for (size_t g = 0; g < mixed_.size(); ++g) {
    for (size_t i = 0; i < rare_[g].size(); ++i) {
      const SignalledResponse& o = mixed_[g]->responses[i];
      if (!o.right || !(o.A > 0)) continue;
      StepSums& sums = by_step[mixed_[g]->step];
      const bool rare = is_rare(g, i);
      ++(rare ? sums.rare : sums.other);
      sums.stage_1.add(rare, o.A, o.A_mod);
      sums.all.add(rare, o.A, o.A_final);
    }
  }
  for (const auto& [step, sums] : by_step) {
    out_.steps.push_back({step, sums.rare, sums.other, sums.stage_1.means(), sums.all.means(), {}});
    for (size_t s = 0; s < kSignals; ++s) out_.steps.back().z_rare[s] = z_of_step_[step][s].mean();
  }
}

}  // namespace

const SignalDiagnosis* Diagnosis::best() const {
  const auto worse = [](const SignalDiagnosis& a, const SignalDiagnosis& b) {
    return a.share_over() != b.share_over() ? a.share_over() > b.share_over() : a.z_rare.value > b.z_rare.value;
  };
  const SignalDiagnosis* best = nullptr;
  for (const SignalDiagnosis& s : signals) {
    if (!is_setting(s.signal) || s.effect != RareEffect::protects) continue;
    if (best == nullptr || worse(*best, s)) best = &s;
  }
  return best;
}

Diagnosis diagnose(std::span<const SignalledGroup> groups, const DiagnosisOptions& options) {
  return Diagnoser(groups, options).run();
}

}  // namespace ucas

#include "compare/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/str.h"
#include "base/text/fields.h"
#include "objective/advantage/group_advantage.h"
#include "results/table.h"
#include "stats/calibration.h"
#include "verify/registry.h"

namespace ucas {

namespace {

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

// Of each response: which share of its group begins as it does, or is right or wrong with it.
std::vector<double> shares_of(const SignalledGroup& group, RareBy by) {
  const auto kind = [by](const SignalledResponse& o) {
    return by == RareBy::opening ? o.opening : std::string(o.right ? "right" : "wrong");
  };
  std::map<std::string, int64_t> count;
  for (const SignalledResponse& o : group.responses) ++count[kind(o)];
  std::vector<double> shares;
  for (const SignalledResponse& o : group.responses) {
    shares.push_back(static_cast<double>(count[kind(o)]) / static_cast<double>(group.responses.size()));
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
  bool is_rare(size_t g, size_t i) const { return rare_[g][i]; }

  std::span<const SignalledGroup> groups_;
  const DiagnosisOptions& options_;
  std::vector<const SignalledGroup*> mixed_;
  std::vector<std::vector<bool>> rare_;  // of mixed_: right and rare
  Diagnosis out_;
};

Diagnosis Diagnoser::run() {
  count();
  for (size_t s = 0; s < kSignals; ++s) {
    SignalDiagnosis found = signal(static_cast<Signal>(s));
    if (found.groups > 0) out_.signals.push_back(found);
  }
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
  MeanSum area;
  ByProblem right, rare;
  for (size_t g = 0; g < mixed_.size(); ++g) {
    const std::vector<double> values = values_of(*mixed_[g], signal);
    if (!all_finite(values)) continue;
    ++out.groups;
    area.add(auroc(values, right_of(*mixed_[g])));
    const std::vector<double> z = standardized(values);
    for (size_t i = 0; i < z.size(); ++i) {
      const SignalledResponse& o = mixed_[g]->responses[i];
      if (!o.right) continue;
      right[mixed_[g]->problem].add(z[i]);
      ++out.right;
      out.right_over += z[i] > 0;
      if (!is_rare(g, i)) continue;
      rare[mixed_[g]->problem].add(z[i]);
      ++out.rare;
      out.rare_over += z[i] > 0;
    }
  }
  out.auroc = area.mean();
  if (!right.empty()) out.z_right = mean_of(means_of(right));
  if (rare.empty()) return out;
  const std::vector<double> of_problems = means_of(rare);
  out.z_rare = mean_estimate(of_problems, options_.level);
  if (constant(of_problems)) out.z_rare.low = out.z_rare.high = out.z_rare.value;
  if (out.selects || out.rare < Diagnosis::kFewestRare || std::ssize(rare) < Diagnosis::kFewestProblems) return out;
  if (out.z_rare.high < 0) out.effect = RareEffect::protects;
  if (out.z_rare.low > 0) out.effect = RareEffect::shrinks;
  return out;
}

}  // namespace

Diagnosis diagnose(std::span<const SignalledGroup> groups, const DiagnosisOptions& options) {
  return Diagnoser(groups, options).run();
}

namespace {

SignalledResponse signalled(const SampledResponse& sampled, int64_t words) {
  SignalledResponse o;
  o.opening = opening_of(sampled.response, words);
  o.right = sampled.right();
  o.signal = {sampled.confidence, sampled.logprob / static_cast<double>(sampled.tokens), -sampled.entropy, kUnknown,
              static_cast<double>(sampled.tokens)};
  return o;
}

}  // namespace

std::string opening_of(const std::string& text, int64_t words) {
  std::vector<std::string> first;
  std::string word;
  for (const char c : text + " ") {
    if (std::string_view(" \t\r\n\v\f").find(c) == std::string_view::npos) {
      word += c;
    } else if (!word.empty()) {
      first.push_back(std::move(word));
      word.clear();
      if (std::ssize(first) == words) break;
    }
  }
  return join(first, " ");
}

std::vector<SignalledGroup> signalled_groups(std::span<const ProblemRow> rows, int64_t words) {
  std::vector<SignalledGroup> groups;
  for (const ProblemRow& row : rows) {
    SignalledGroup group;
    group.problem = str(row.source, "\n", row.id);
    std::vector<Verdict> verdicts;
    for (const SampledResponse& sampled : row.responses) {
      if (sampled.tokens <= 0) continue;  // no token, or their number is not recorded: nothing to take a mean of
      group.responses.push_back(signalled(sampled, words));
      verdicts.emplace_back();
      verdicts.back().kind = sampled.verdict.value_or(VerdictKind::unparseable);
      verdicts.back().answer = sampled.answer;
    }
    if (group.responses.size() < 2) continue;
    make_grader(GraderKind::math)->classify(verdicts);
    // Which share of the group gave the same answer; one that could not be read agrees with itself alone.
    std::vector<int32_t> answers;
    for (const Verdict& verdict : verdicts) answers.push_back(verdict.answer_class);
    const std::vector<double> shares = agreement(answers);
    for (size_t i = 0; i < shares.size(); ++i) {
      group.responses[i].signal[static_cast<size_t>(Signal::self_consistency)] = shares[i];
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

namespace {

constexpr size_t kDiagnosisWidth = 110;

std::string z_text(double z) { return signed_text(z, 2); }

Cell z_cell(double z) { return Cell::decimal(z, 2, true); }

std::string signals_table(const DiagnosisReport& report) {
  const std::string interval = str(percent(report.options.level, 0), " interval");
  Table table{{"signal", "AUROC", "z right", "of them z > 0", "z rare right", interval, "of them z > 0", "stage 1"}};
  for (const SignalDiagnosis& s : report.found.signals) {
    const Figure& z = s.z_rare;
    table.add({word_of(s.signal), Cell::decimal(s.auroc, 3), z_cell(s.z_right), share_text(s.right_share_over()),
               z_cell(z.value),
               s.selects     ? "chosen by it"
               : z.bounded() ? str(z_text(z.low), " to ", z_text(z.high))
                             : "-",
               share_text(s.share_over()), word_of(s.effect)});
  }
  return "\n" + table.text("  ", kDiagnosisWidth);
}

// "rare: ..", what makes a right response rare.
std::string rare_words(const DiagnosisReport& report) {
  const std::string share = percent(report.options.rare);
  switch (report.options.rare_by) {
    case RareBy::opening:
      return str("strategy: the first ", report.opening == 1 ? std::string("word") : many(report.opening, "word"),
                 "; rare: at most ", share, " of the responses to its problem");
    case RareBy::accuracy:
      return str("rare: at most ", share, " of the responses to its problem are right");
    case RareBy::logprob:
      return str("rare: among the ", share, " of the right responses to its problem with the lowest mean log-prob");
  }
  return "";
}

std::string reading(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  if (found.enough()) {
    return "protects, shrinks: lower, or higher, for rare right responses than for their group, so that stage 1 would "
           "raise, or lower, their reward (--method.response_confidence; --method.alpha_pos 0 leaves it alone).";
  }
  return str("No conclusion: ", many(found.rare, "rare right response"), " of ", many(found.rare_problems, "problem"),
             ", expected at least ", Diagnosis::kFewestRare, " of ", Diagnosis::kFewestProblems,
             ". Evaluate with more samples of each problem (--samples 64 or more), more or harder problems, or another "
             "--rare_by, --opening or --rare.");
}

}  // namespace

std::string diagnosis_text(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  std::string text = str(report.source, "\n  ", many(found.groups, "group"), ", ", grouped(found.mixed),
                         " with right and wrong responses: ", many(found.responses, "response"), " to ",
                         many(found.problems, "problem"), ", ", many(found.rare, "rare right one"), " to ",
                         grouped(found.rare_problems), "\n  ", rare_words(report), "\n");
  for (const std::string& remark : report.remarks) text += str("  note: ", remark, "\n");
  if (!found.signals.empty()) text += signals_table(report);
  return str(text, "\n  ", wrap_text(reading(report), kDiagnosisWidth, 2, 2), "\n");
}

}  // namespace ucas

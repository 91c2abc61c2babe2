#include "results/compare/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/str.h"
#include "base/text/fields.h"
#include "objective/advantage/group_advantage.h"
#include "results/stats/samples.h"
#include "results/table.h"
#include "verify/registry.h"

namespace ucas {

namespace {

using ByProblem = std::map<std::string, std::vector<double>>;

std::vector<double> means_of(const ByProblem& values) {
  std::vector<double> means;
  for (const auto& [problem, of] : values) means.push_back(mean_of(of));
  return means;
}

std::vector<double> values_of(const SignalledGroup& group, Signal signal) {
  std::vector<double> values;
  for (const SignalledResponse& o : group.responses) values.push_back(o.signal[static_cast<size_t>(signal)]);
  return values;
}

// Which of the group's responses are right and rare.
std::vector<bool> rare_of(const SignalledGroup& group, const DiagnosisOptions& options) {
  const double rare = options.rare * (1 + 1e-12);  // 0.1 is not 10 of 100
  std::vector<bool> is(group.responses.size());
  if (options.rare_by != RareBy::logprob) {  // few of its group begin as it does, or are right
    const auto like = [&](const SignalledResponse& a, const SignalledResponse& b) {
      return options.rare_by == RareBy::opening ? a.opening == b.opening : a.right == b.right;
    };
    for (size_t i = 0; i < is.size(); ++i) {
      const SignalledResponse& o = group.responses[i];
      const auto alike = std::ranges::count_if(group.responses, [&](const auto& other) { return like(o, other); });
      is[i] = o.right && static_cast<double>(alike) / static_cast<double>(is.size()) <= rare;
    }
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

struct MixedGroup {
  const SignalledGroup* group;
  std::vector<bool> right, rare;  // rare: and right
};

SignalDiagnosis diagnose_signal(const std::vector<MixedGroup>& mixed, Signal signal, const DiagnosisOptions& options) {
  SignalDiagnosis out;
  out.signal = signal;
  out.selects = selects(options.rare_by, signal);
  std::vector<double> areas;
  ByProblem right, rare;
  for (const MixedGroup& of : mixed) {
    const std::vector<double> values = values_of(*of.group, signal);
    if (!std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) continue;
    ++out.groups;
    areas.push_back(auroc(values, of.right));
    const GroupAdvantageConfig config;
    const std::vector<double> z = zscore(values, {}, config.eps, config.ddof);  // C_hat as UCAS has it: Eq. 7
    for (size_t i = 0; i < z.size(); ++i) {
      if (!of.right[i]) continue;
      right[of.group->problem].push_back(z[i]);
      ++out.right;
      out.right_over += z[i] > 0;
      if (!of.rare[i]) continue;
      rare[of.group->problem].push_back(z[i]);
      ++out.rare;
      out.rare_over += z[i] > 0;
    }
  }
  out.auroc = mean_of(areas);
  out.z_right = mean_of(means_of(right));
  const std::vector<double> of_problems = means_of(rare);
  out.z_rare = mean_estimate(of_problems, options.level);
  if (!rare.empty() && constant(of_problems)) out.z_rare.low = out.z_rare.high = out.z_rare.value;
  if (out.selects || out.rare < Diagnosis::kFewestRare || std::ssize(rare) < Diagnosis::kFewestProblems) return out;
  if (out.z_rare.high < 0) out.effect = RareEffect::protects;
  if (out.z_rare.low > 0) out.effect = RareEffect::shrinks;
  return out;
}

}  // namespace

Diagnosis diagnose(std::span<const SignalledGroup> groups, const DiagnosisOptions& options) {
  Diagnosis out;
  std::vector<MixedGroup> mixed;
  std::set<std::string> problems, rare_problems;
  for (const SignalledGroup& group : groups) {
    std::vector<bool> right;
    for (const SignalledResponse& o : group.responses) right.push_back(o.right);
    const auto count = std::ranges::count(right, true);
    if (count == 0 || count == std::ssize(right)) continue;
    mixed.push_back({&group, right, rare_of(group, options)});
    const auto rare = std::ranges::count(mixed.back().rare, true);
    problems.insert(group.problem);
    if (rare > 0) rare_problems.insert(group.problem);
    out.responses += std::ssize(right);
    out.rare += rare;
  }
  out.groups = std::ssize(groups);
  out.mixed = std::ssize(mixed);
  out.problems = std::ssize(problems);
  out.rare_problems = std::ssize(rare_problems);
  for (size_t i = 0; i < kSignals; ++i) {
    SignalDiagnosis found = diagnose_signal(mixed, static_cast<Signal>(i), options);
    if (found.groups > 0) out.signals.push_back(found);
  }
  return out;
}

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
      group.responses.push_back({opening_of(sampled.response, words),
                                 sampled.right(),
                                 {sampled.confidence, sampled.logprob / static_cast<double>(sampled.tokens),
                                  -sampled.entropy, kUnknown, static_cast<double>(sampled.tokens)}});
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

std::string signals_table(const DiagnosisReport& report) {
  const std::string interval = str(percent(report.options.level, 0), " interval");
  Table table{{"signal", "AUROC", "z right", "of them z > 0", "z rare right", interval, "of them z > 0", "stage 1"}};
  for (const SignalDiagnosis& s : report.found.signals) {
    const Figure& z = s.z_rare;
    table.add({word_of(s.signal), Cell::decimal(s.auroc, 3), Cell::decimal(s.z_right, 2, true),
               share_text(s.right_over, s.right), Cell::decimal(z.value, 2, true),
               s.selects     ? "chosen by it"
               : z.bounded() ? str(signed_text(z.low, 2), " to ", signed_text(z.high, 2))
                             : "-",
               share_text(s.rare_over, s.rare), word_of(s.effect)});
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

std::string reading(const Diagnosis& found) {
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
  return str(text, "\n  ", wrap_text(reading(found), kDiagnosisWidth, 2, 2), "\n");
}

}  // namespace ucas

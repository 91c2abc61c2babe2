#include "compare/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/fields.h"
#include "base/text/json.h"
#include "objective/advantage/group_advantage.h"
#include "results/table.h"
#include "stats/calibration.h"
#include "verify/registry.h"

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
  void steps();
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

void Diagnoser::steps() {
  struct StepSums {
    MeanSum shrunk, rare, other;
  };
  std::map<int64_t, StepSums> by_step;
  for (size_t g = 0; g < mixed_.size(); ++g) {
    for (size_t i = 0; i < rare_[g].size(); ++i) {
      const SignalledResponse& o = mixed_[g]->responses[i];
      if (!o.right || !(o.A > 0) || !std::isfinite(o.A_final)) continue;
      StepSums& sums = by_step[mixed_[g]->step];
      (is_rare(g, i) ? sums.rare : sums.other).add(o.A_final / o.A);
      if (is_rare(g, i)) sums.shrunk.add(o.A_final < o.A * (1 - kShrinkRounding) ? 1 : 0);
    }
  }
  for (const auto& [step, sums] : by_step) {
    out_.steps.push_back(
        {step, sums.rare.count, sums.other.count, sums.shrunk.mean(), sums.rare.mean(), sums.other.mean()});
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

namespace {

double& value_of(SignalledResponse& o, Signal signal) { return o.signal[static_cast<size_t>(signal)]; }

// Which share of the group gave the same answer; one that could not be read agrees with itself alone.
void add_self_consistency(std::vector<SignalledResponse>& group, const std::vector<Verdict>& verdicts) {
  std::vector<int32_t> answers;
  for (const Verdict& verdict : verdicts) answers.push_back(verdict.answer_class);
  const std::vector<double> shares = agreement(answers);
  for (size_t i = 0; i < group.size(); ++i) value_of(group[i], Signal::self_consistency) = shares[i];
}

SignalledResponse signalled(const SampledResponse& sampled, int64_t words) {
  SignalledResponse o;
  o.opening = opening_of(sampled.response, words);
  o.right = sampled.right();
  o.signal = {sampled.confidence, sampled.logprob / static_cast<double>(sampled.tokens), -sampled.entropy, kUnknown,
              static_cast<double>(sampled.tokens)};
  return o;
}

double mean_or_unknown(const std::vector<float>& values, const Response& o) {
  return values.empty() ? kUnknown : mean(Batch::tokens(values, o));
}

// The text of a response without the tokens that end it.
std::string text_of_step(const StepData& data, const Response& o) {
  std::string text;
  for (int64_t t = o.first; t < o.first + o.length; ++t) {
    const int32_t id = data.batch.token[static_cast<size_t>(t)];
    if (std::ranges::count(data.batch.stop_ids, id) == 0) text += data.piece[static_cast<size_t>(t)];
  }
  return text;
}

// A row of the method's trace, [B]; nullptr if it has none of that name.
const std::vector<float>* traced(const StepData& data, const char* name) {
  for (const StepData::Signal& signal : data.trace) {
    if (!signal.per_token && signal.name == name) return &signal.values;
  }
  return nullptr;
}

SignalledResponse signalled(const StepData& data, const Response& o_i, int64_t words) {
  SignalledResponse o;
  o.opening = opening_of(text_of_step(data, o_i), words);
  o.right = o_i.verdict.kind == VerdictKind::equal;
  o.signal = {mean_or_unknown(data.batch.confidence, o_i), mean_or_unknown(data.batch.old_logprob, o_i),
              -mean_or_unknown(data.batch.entropy, o_i), kUnknown, static_cast<double>(o_i.length)};
  o.A_final = mean_or_unknown(data.advantage, o_i);
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
    add_self_consistency(group.responses, verdicts);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<SignalledGroup> signalled_groups(const StepData& data, int64_t words) {
  UCAS_CHECK(data.piece.size() == data.batch.token.size(), "each token needs its text");
  const std::vector<float>* A = traced(data, "A");
  const Batch batch = with_answer_classes(data);
  std::vector<SignalledGroup> groups;
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const Group& from = batch.groups[g];
    const auto responses = batch.of(from);
    const std::vector<double> plain = group_advantage(responses, GroupAdvantageConfig{});
    SignalledGroup group;
    group.problem = data.problem[g];
    group.step = data.step;
    std::vector<Verdict> verdicts;
    for (size_t i = 0; i < responses.size(); ++i) {
      if (responses[i].length == 0) continue;
      const auto row = static_cast<size_t>(from.first) + i;
      SignalledResponse& o = group.responses.emplace_back(signalled(data, responses[i], words));
      // UCAS may leave out the deviation (norm_by_std): its own A is what its W weighs.
      o.A = A != nullptr ? (*A)[row] : plain[i];
      verdicts.push_back(responses[i].verdict);
    }
    if (group.responses.size() < 2) continue;
    add_self_consistency(group.responses, verdicts);
    groups.push_back(std::move(group));
  }
  return groups;
}

namespace {

constexpr size_t kDiagnosisWidth = 110;
constexpr double kNearShare = 0.05;  // signals that shrink about as few rare right responses as the best one

std::string z_text(double z) { return signed_text(z, 2); }

Cell z_cell(double z) { return Cell::decimal(z, 2, true); }

std::string signals_table(const DiagnosisReport& report) {
  const std::string interval = str(percent(report.options.level, 0), " interval");
  Table table{{"signal", "AUROC", "z right", "of them z > 0", "z rare right", interval, "of them z > 0"}};
  for (const SignalDiagnosis& s : report.found.signals) {
    const Figure& z = s.z_rare;
    table.add({word_of(s.signal), Cell::decimal(s.auroc, 3), z_cell(s.z_right), share_text(s.right_share_over()),
               z_cell(z.value),
               s.selects     ? "chosen by it"
               : z.bounded() ? str(z_text(z.low), " to ", z_text(z.high))
                             : "-",
               share_text(s.share_over())});
  }
  return "\n" + table.text("  ", kDiagnosisWidth);
}

std::string steps_table(const DiagnosisReport& report) {
  const std::vector<StepDiagnosis>& steps = report.found.steps;
  if (steps.empty() || steps.front().step < 0) return "";
  Table table{{"step", "rare right", "other right", "shrunk", "rare x", "other x"}, {}, "rr"};
  for (const StepDiagnosis& s : steps) {
    table.add({str(s.step), Cell::count(s.rare), Cell::count(s.other), share_text(s.shrunk),
               Cell::decimal(s.rare_factor, 3), Cell::decimal(s.other_factor, 3)});
  }
  return str(
      "\n  what the method made of the advantage of right responses: share of the rare ones that it lowered, "
      "mean factors\n",
      table.text("  ", kDiagnosisWidth));
}

std::string words_of(const DiagnosisReport& report, RareEffect effect) {
  std::vector<std::string> names;
  for (const SignalDiagnosis& s : report.found.signals) {
    if (is_setting(s.signal) && s.effect == effect && !s.selects) {
      names.push_back(
          str(word_of(s.signal), " (z ", z_text(s.z_rare.value), ", ", percent(s.share_over()), " of them above 0)"));
    }
  }
  return join(names, ", ");
}

std::string setting_sentence(const Diagnosis& found) {
  if (const SignalDiagnosis* best = found.best()) {
    std::vector<std::string> near;
    for (const SignalDiagnosis& s : found.signals) {
      const bool other = &s != best && is_setting(s.signal) && s.effect == RareEffect::protects;
      if (other && s.share_over() - best->share_over() <= kNearShare) near.emplace_back(word_of(s.signal));
    }
    return str("Fewest shrunk: --method.response_confidence ", word_of(best->signal),
               near.empty() ? "" : str(", and no more than 5 in 100 behind it: ", join(near, ", ")), ".");
  }
  return "No signal protects them; --method.alpha_pos 0 leaves the reward of right responses alone.";
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
    case RareBy::answer:
      return str("rare: at most ", share, " of the responses to its problem give its answer");
    case RareBy::logprob:
      return str("rare: among the ", share, " of the right responses to its problem with the lowest mean log-prob");
  }
  return "";
}

// What else to try where there are too few.
std::string other_kinds(const DiagnosisReport& report) {
  if (report.options.rare_by != RareBy::opening) return "another --rare_by or a larger --rare.";
  return "another --opening or --rare. First words tell strategies only where responses differ by them; --rare_by "
         "accuracy and logprob need no words.";
}

}  // namespace

std::string diagnosis_reading(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  if (!found.enough()) {
    return str("No conclusion: ", many(found.rare, "rare right response"), " of ", many(found.rare_problems, "problem"),
               ", expected at least ", Diagnosis::kFewestRare, " of ", Diagnosis::kFewestProblems,
               ". Evaluate with more samples of each problem (--samples 64 or more), more or harder problems, or ",
               other_kinds(report));
  }
  std::string text;
  const std::string protects = words_of(report, RareEffect::protects), shrinks = words_of(report, RareEffect::shrinks);
  const std::string unclear = words_of(report, RareEffect::unclear);
  if (!protects.empty())
    text +=
        str("Lower for rare right responses than for their group, so stage 1 would protect "
            "them: ",
            protects, ". ");
  if (!shrinks.empty()) text += str("Higher, so it would shrink their reward: ", shrinks, ". ");
  if (!unclear.empty()) text += str("Cannot be told from 0: ", unclear, ". ");
  return text + setting_sentence(found);
}

std::string diagnosis_text(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  std::string text = str(report.source, "\n  ", many(found.groups, "group"), ", ", grouped(found.mixed),
                         " with right and wrong responses: ", many(found.responses, "response"), " to ",
                         many(found.problems, "problem"), ", ", many(found.rare, "rare right one"), " to ",
                         grouped(found.rare_problems), "\n  ", rare_words(report), "\n");
  for (const std::string& remark : report.remarks) text += str("  note: ", remark, "\n");
  if (!found.signals.empty()) text += signals_table(report);
  text += steps_table(report);
  return str(text, "\n  ", wrap_text(diagnosis_reading(report), kDiagnosisWidth, 2, 2), "\n");
}

std::string diagnosis_json(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  OrderedJson json = {{"format", "ucas-diagnosis-1"},
                      {"source", report.source},
                      {"remarks", report.remarks},
                      {"opening", report.opening},
                      {"rare_by", word_of(report.options.rare_by)},
                      {"rare_share", report.options.rare},
                      {"groups", found.groups},
                      {"mixed_groups", found.mixed},
                      {"problems", found.problems},
                      {"responses", found.responses},
                      {"rare_right", found.rare},
                      {"rare_right_problems", found.rare_problems},
                      {"enough", found.enough()},
                      {"signals", OrderedJson::array()},
                      {"steps", OrderedJson::array()}};
  for (const SignalDiagnosis& s : found.signals) {
    json["signals"].push_back({{"signal", word_of(s.signal)},
                               {"setting", is_setting(s.signal)},
                               {"groups", s.groups},
                               {"auroc", s.auroc},
                               {"z_right", s.z_right},
                               {"z_rare_right", json_of(s.z_rare)},
                               {"rare_right", s.rare},
                               {"rare_right_over_0", s.rare_over},
                               {"right", s.right},
                               {"right_over_0", s.right_over},
                               {"selects", s.selects},
                               {"effect", word_of(s.effect)}});
  }
  for (const StepDiagnosis& s : found.steps) {
    if (s.step < 0) continue;
    json["steps"].push_back({{"step", s.step},
                             {"rare_right", s.rare},
                             {"other_right", s.other},
                             {"rare_shrunk", s.shrunk},
                             {"rare_factor", s.rare_factor},
                             {"other_factor", s.other_factor}});
  }
  const SignalDiagnosis* best = found.best();
  json["best"] = best == nullptr ? OrderedJson(nullptr) : OrderedJson(word_of(best->signal));
  json["reading"] = diagnosis_reading(report);
  return json_text(json) + "\n";
}

}  // namespace ucas

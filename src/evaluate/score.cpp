#include "evaluate/score.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "results/stats/intervals.h"
#include "results/stats/samples.h"
#include "verify/grader.h"

namespace ucas {

namespace {

// One problem's responses of one kind (greedy or sampled), reduced to what the figures need.
struct Tally {
  int64_t responses = 0, correct = 0, tokens = 0, truncated = 0, unparseable = 0;
  int64_t uncounted = 0, ends_unknown = 0;  // of responses that something else generated
  double entropy = 0;                       // sum over tokens
  bool majority_right = false;
  std::vector<SampledResponse> stored;
};

SampledResponse stored_response(const Output& output, const Verdict& verdict) {
  return {.response = output.text,
          .answer = verdict.answer,
          .verdict = verdict.kind,
          .tokens = output.counted() ? output.length() : -1,
          .finished = output.finished,
          .end_known = output.end_known,
          .ids = output.ids,
          .logprob = output.logprob,
          .entropy = output.entropy,
          .confidence = output.confidence};
}

class Scorer {
 public:
  Scorer(std::span<const Problem> problems, std::span<const Responses> responses, const Graders& graders,
         const EvalConfig& config, std::vector<Verdict> verdicts)
      : problems_(problems),
        responses_(responses),
        graders_(graders),
        config_(config),
        verdicts_(std::move(verdicts)) {}
  EvalRecord run();

 private:
  using Places = std::vector<size_t>;  // of problems
  Tally tally(const std::vector<Output>& outputs, const Problem& problem, int64_t stored);
  const Tally& shown(size_t i) const { return sampled_[i].responses > 0 ? sampled_[i] : greedy_[i]; }
  EvalNumbers figures(const Places& places) const;
  void add_shares(const Places& places, EvalNumbers& out) const;
  EvalNumbers macro(const std::vector<Places>& sets) const;
  void add_subjects(const std::string& source, const Places& places, EvalRecord& result) const;
  Figure interval_of_mean(const std::vector<double>& values) const;
  std::vector<ProblemRow> rows();
  // The values behind each figure of samples, one per problem that has samples.
  struct Sampled {
    std::vector<std::pair<int64_t, std::vector<double>>> mean, pass, majority, cover;
  };
  Sampled sampled_values(const Places& places) const;

  std::span<const Problem> problems_;
  std::span<const Responses> responses_;
  const Graders& graders_;
  const EvalConfig& config_;
  std::vector<Verdict> verdicts_;        // of items_to_grade()
  size_t next_ = 0;                      // of them
  std::vector<Tally> greedy_, sampled_;  // by problem; without responses where there are none
};

EvalRecord Scorer::run() {
  EvalRecord result;
  result.config = config_;
  std::vector<std::string> sources;
  std::vector<Places> sets;
  Places all;
  for (size_t i = 0; i < problems_.size(); ++i) {
    greedy_.push_back(tally(responses_[i].greedy, problems_[i], 1));
    sampled_.push_back(tally(responses_[i].samples, problems_[i], config_.stored_responses));
    result.tokens += greedy_[i].tokens + sampled_[i].tokens;
    all.push_back(i);
    const std::string& source = problems_[i].source;
    const auto found = std::ranges::find(sources, source);
    const auto set = static_cast<size_t>(found - sources.begin());
    if (found == sources.end()) {
      sources.push_back(source);
      sets.emplace_back();
    }
    sets[set].push_back(i);
  }
  static_cast<EvalNumbers&>(result) = figures(all);
  for (size_t s = 0; s < sets.size(); ++s) {
    result.by_source.emplace_back(sources[s], figures(sets[s]));
    add_subjects(sources[s], sets[s], result);
  }
  if (sets.size() > 1) result.macro = macro(sets);
  result.rows = rows();
  return result;
}

Tally Scorer::tally(const std::vector<Output>& outputs, const Problem& problem, int64_t stored) {
  Tally out;
  if (outputs.empty()) return out;
  const Grader& verifier = graders_.for_source(problem.source);
  const std::span verdicts = std::span(verdicts_).subspan(next_, outputs.size());
  next_ += outputs.size();
  note_over_budget(verdicts);
  verifier.classify(verdicts);
  std::vector<char> right;
  std::vector<int32_t> classes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    Verdict& verdict = verdicts[i];
    if (!output.finished && config_.truncated == Truncated::wrong && verdict.kind == VerdictKind::equal) {
      verdict.kind = VerdictKind::unequal;
    }
    right.push_back(verdict.kind == VerdictKind::equal);
    classes.push_back(verdict.answer_class);
    const int64_t length = output.length();
    ++out.responses;
    out.uncounted += !output.counted();
    out.ends_unknown += !output.end_known;
    out.correct += right.back();
    out.tokens += length;
    out.truncated += !output.finished;
    out.unparseable += verdict.kind == VerdictKind::unparseable;
    if (length > 0) out.entropy += output.entropy * static_cast<double>(length);
    if (static_cast<int64_t>(i) < stored) out.stored.push_back(stored_response(output, verdict));
  }
  if (const auto vote = majority(classes)) out.majority_right = right[*vote];
  return out;
}

Figure Scorer::interval_of_mean(const std::vector<double>& values) const {
  return share_mean(values, static_cast<uint64_t>(config_.seed), config_.confidence_level, config_.bootstrap_draws);
}

Scorer::Sampled Scorer::sampled_values(const Places& places) const {
  Sampled out;
  std::vector<const Tally*> tallies;
  for (size_t i : places) {
    if (sampled_[i].responses > 0) tallies.push_back(&sampled_[i]);
  }
  if (tallies.empty()) return out;
  const auto add = [&](auto& list, int64_t k, auto value) {
    std::vector<double> values;
    for (const Tally* t : tallies) values.push_back(value(*t));
    list.emplace_back(k, std::move(values));
  };
  const int64_t n = config_.samples;
  // With more samples than the field quotes its figure is still given, estimated from all of them as pass@k is.
  for (int64_t k : std::set<int64_t>{std::min(kQuotedSamples, n), n}) {
    add(out.mean, k, [](const Tally& t) { return mean_at_n({t.responses, t.correct}); });
  }
  add(out.majority, n, [](const Tally& t) { return t.majority_right ? 1.0 : 0.0; });
  if (n > 1) add(out.cover, n, [](const Tally& t) { return covers({t.responses, t.correct}, kCoverAt) ? 1.0 : 0.0; });
  for (int64_t k : config_.ks) {
    if (k <= n) add(out.pass, k, [k](const Tally& t) { return pass_at_k({t.responses, t.correct}, k); });
  }
  return out;
}

EvalNumbers Scorer::figures(const Places& places) const {
  EvalNumbers out;
  out.problems = static_cast<int64_t>(places.size());
  int64_t asked = 0, correct = 0;
  for (size_t i : places) {
    asked += greedy_[i].responses;
    correct += greedy_[i].correct;
  }
  if (asked > 0) {
    const auto interval = clopper_pearson(correct, asked, config_.confidence_level);
    out.greedy = {static_cast<double>(correct) / static_cast<double>(asked), interval.low, interval.high};
  }
  const Sampled values = sampled_values(places);
  for (const auto& [k, list] : values.mean) out.mean_at.push_back({k, interval_of_mean(list)});
  for (const auto& [k, list] : values.majority) out.majority_at.push_back({k, interval_of_mean(list)});
  for (const auto& [k, list] : values.cover) out.cover = interval_of_mean(list);
  for (const auto& [k, list] : values.pass) out.pass_at.push_back({k, interval_of_mean(list)});
  add_shares(places, out);
  return out;
}

void Scorer::add_shares(const Places& places, EvalNumbers& out) const {
  Tally sum;
  for (size_t i : places) {
    const Tally& t = shown(i);
    sum.responses += t.responses;
    sum.tokens += t.tokens;
    sum.truncated += t.truncated;
    sum.uncounted += t.uncounted;
    sum.ends_unknown += t.ends_unknown;
    sum.unparseable += t.unparseable;
    sum.entropy += t.entropy;
  }
  const auto responses = static_cast<double>(std::max<int64_t>(sum.responses, 1));
  out.entropy = sum.entropy / static_cast<double>(std::max<int64_t>(sum.tokens, 1));
  out.length = static_cast<double>(sum.tokens) / responses;
  out.truncated = static_cast<double>(sum.truncated) / responses;
  out.unparseable = static_cast<double>(sum.unparseable) / responses;
  if (sum.uncounted > 0) out.entropy = out.length = kUnknown;
  if (sum.ends_unknown > 0) out.truncated = kUnknown;
}

EvalNumbers Scorer::macro(const std::vector<Places>& sets) const {
  const auto estimate = [&](const std::vector<std::vector<double>>& values) {
    return macro_mean(values, static_cast<uint64_t>(config_.seed), config_.confidence_level, config_.bootstrap_draws);
  };
  EvalNumbers out;
  std::vector<std::vector<double>> greedy;
  std::vector<Sampled> sampled;
  for (const Places& places : sets) {
    std::vector<double> right;
    for (size_t i : places) {
      if (greedy_[i].responses > 0) right.push_back(static_cast<double>(greedy_[i].correct));
    }
    if (!right.empty()) greedy.push_back(std::move(right));
    sampled.push_back(sampled_values(places));
  }
  if (greedy.size() == sets.size()) out.greedy = estimate(greedy);
  // A mean over some of the sets only would be another figure under the same name.
  if (std::any_of(sampled.begin(), sampled.end(), [](const Sampled& s) { return s.mean.empty(); })) return out;
  const auto over_sets = [&](auto member, std::vector<FigureAt>& list) {
    for (size_t j = 0; j < (sampled.front().*member).size(); ++j) {
      std::vector<std::vector<double>> values;
      for (const Sampled& s : sampled) values.push_back((s.*member)[j].second);
      list.push_back({(sampled.front().*member)[j].first, estimate(values)});
    }
  };
  over_sets(&Sampled::mean, out.mean_at);
  over_sets(&Sampled::pass, out.pass_at);
  over_sets(&Sampled::majority, out.majority_at);
  std::vector<FigureAt> cover;
  over_sets(&Sampled::cover, cover);
  if (!cover.empty()) out.cover = cover[0].share;
  return out;
}

// Problems without a subject are left to the source's own figures.
void Scorer::add_subjects(const std::string& source, const Places& places, EvalRecord& result) const {
  std::map<std::string, Places> subjects;
  for (size_t i : places) {
    if (!problems_[i].subject.empty()) subjects[problems_[i].subject].push_back(i);
  }
  if (subjects.size() < 2) return;
  SubjectNumbers& out = result.by_subject[source];
  std::vector<Places> sets;
  for (const auto& [subject, mine] : subjects) {
    out.subjects[subject] = figures(mine);
    sets.push_back(mine);
  }
  out.macro = macro(sets);
}

std::vector<ProblemRow> Scorer::rows() {
  std::vector<ProblemRow> out;
  for (size_t i = 0; i < problems_.size(); ++i) {
    const Problem& problem = problems_[i];
    ProblemRow& row = out.emplace_back();
    row.id = problem.id;
    row.source = problem.source;
    row.subject = problem.subject;
    row.problem = problem.text;
    row.gold = problem.gold;
    const Tally& all = shown(i);
    row.mean_length = static_cast<double>(all.tokens) / static_cast<double>(std::max<int64_t>(all.responses, 1));
    if (all.uncounted > 0) row.mean_length = kUnknown;
    if (!greedy_[i].stored.empty()) row.greedy = std::move(greedy_[i].stored.front());
    row.samples = sampled_[i].responses;
    row.correct = sampled_[i].correct;
    row.responses = std::move(sampled_[i].stored);
  }
  return out;
}

}  // namespace

std::vector<GradeItem> items_to_grade(std::span<const Problem> problems, std::span<const Responses> responses) {
  UCAS_CHECK(problems.size() == responses.size(), "expected one set of responses per problem");
  std::vector<GradeItem> items;
  for (size_t i = 0; i < problems.size(); ++i) {
    for (const auto* outputs : {&responses[i].greedy, &responses[i].samples})
      for (const Output& output : *outputs) items.push_back({&problems[i], output.text});
  }
  return items;
}

EvalRecord score(std::span<const Problem> problems, std::span<const Responses> responses, const Graders& graders,
                 const EvalConfig& config) {
  return score(problems, responses, graders, config, grade_all(graders, items_to_grade(problems, responses)));
}

EvalRecord score(std::span<const Problem> problems, std::span<const Responses> responses, const Graders& graders,
                 const EvalConfig& config, std::vector<Verdict> verdicts) {
  UCAS_CHECK(verdicts.size() == items_to_grade(problems, responses).size(), "expected one verdict per response");
  return Scorer(problems, responses, graders, config, std::move(verdicts)).run();
}

}  // namespace ucas

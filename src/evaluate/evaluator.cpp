#include "evaluate/evaluator.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "rollout/policy.h"
#include "stats/intervals.h"
#include "stats/samples.h"

namespace ucas {

namespace {

// mean@16 is what the field quotes: with more samples it is still given, over the first 16 of each problem.
constexpr int64_t kUsualSamples = 16;

// One problem's responses of one kind (greedy or sampled), reduced to what the figures need.
struct Tally {
  int64_t responses = 0, correct = 0, correct_of_first = 0, tokens = 0, truncated = 0, unparseable = 0;
  double entropy = 0;  // sum over tokens
  bool majority_right = false;
  std::vector<EvalResponse> stored;
};

class Assessment {
 public:
  Assessment(Rollout& rollout, const Tokenizer& tokenizer, const Verifier& verifier, const EvalInput& input,
             const EvalConfig& config)
      : rollout_(rollout), tokenizer_(tokenizer), verifier_(verifier), input_(input), config_(config) {}
  EvalResult run();

 private:
  // One tally per problem; nothing when stopped early.
  std::optional<std::vector<Tally>> generate(int64_t samples, const SamplingConfig& sampling, int64_t stored);
  Tally tally(std::span<const Sampled> responses, const Problem& problem, int64_t stored) const;
  EvalFigures figures(const std::vector<size_t>& problems) const;
  Estimate interval_of_mean(const std::vector<double>& values) const;
  std::vector<EvalRow> rows();

  Rollout& rollout_;
  const Tokenizer& tokenizer_;
  const Verifier& verifier_;
  const EvalInput& input_;
  const EvalConfig& config_;
  std::vector<Tally> greedy_, sampled_;  // by problem; empty if not asked for
  std::optional<Progress> progress_;
  int64_t ended_ = 0, streamed_ = 0, tokens_ = 0;
};

EvalResult Assessment::run() {
  UCAS_CHECK(input_.problems.size() == input_.prompts.size(), "one prompt per problem");
  EvalResult result;
  result.label = input_.label;
  result.model = input_.model;
  result.step = input_.step;
  result.data = input_.data;
  result.config = config_;
  const double began = now_seconds();
  const auto n = static_cast<int64_t>(input_.problems.size());
  if (input_.show_progress) {
    progress_.emplace(input_.label.empty() ? "evaluate" : str("evaluate ", input_.label),
                      n * ((config_.greedy ? 1 : 0) + config_.samples), "responses");
  }
  if (config_.greedy) {
    auto tallies = generate(1, {.temperature = 0, .max_tokens = config_.max_tokens}, 1);
    result.complete = tallies.has_value();
    if (tallies) greedy_ = std::move(*tallies);
  }
  if (config_.samples > 0 && result.complete) {
    auto tallies = generate(config_.samples,
                            {.temperature = config_.temperature,
                             .top_p = config_.top_p,
                             .top_k = config_.top_k,
                             .max_tokens = config_.max_tokens},
                            config_.stored_responses);
    result.complete = tallies.has_value();
    if (tallies) sampled_ = std::move(*tallies);
  }
  if (progress_) {
    progress_->update(ended_);
    progress_->finish(str(grouped(tokens_), " tokens"));
  }
  result.tokens = tokens_;
  result.seconds = now_seconds() - began;
  if (!result.complete) return result;

  std::map<std::string, std::vector<size_t>> by_source;
  std::vector<size_t> all;
  for (size_t i = 0; i < input_.problems.size(); ++i) {
    all.push_back(i);
    by_source[input_.problems[i].source].push_back(i);
  }
  result.overall = figures(all);
  for (const auto& [source, problems] : by_source) result.by_source[source] = figures(problems);
  result.rows = rows();
  return result;
}

std::optional<std::vector<Tally>> Assessment::generate(int64_t samples, const SamplingConfig& sampling,
                                                       int64_t stored) {
  std::vector<PromptJob> jobs;
  for (size_t i = 0; i < input_.prompts.size(); ++i) {
    jobs.push_back({.prompt = input_.prompts[i], .problem = static_cast<uint32_t>(i), .samples = samples});
  }
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling = sampling;
  request.seed = static_cast<uint64_t>(config_.seed);
  request.step = kEvaluationStep;
  request.stop_ids = input_.stop_ids;
  request.should_stop = input_.should_stop;
  request.on_response = [&](const Sampled&) { ++ended_; };
  request.on_token = [&](int64_t, uint32_t, int32_t) {
    if (++streamed_ % 64 == 0 && progress_) progress_->update(ended_, str(grouped(streamed_), " tokens"));
  };
  const std::vector<Sampled> responses = rollout_.run(request);
  if (responses.size() != jobs.size() * static_cast<size_t>(samples)) return std::nullopt;
  for (const Sampled& response : responses) tokens_ += static_cast<int64_t>(response.token.size());
  std::vector<Tally> tallies;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto mine = std::span(responses).subspan(i * static_cast<size_t>(samples), static_cast<size_t>(samples));
    tallies.push_back(tally(mine, input_.problems[i], stored));
  }
  return tallies;
}

Tally Assessment::tally(std::span<const Sampled> responses, const Problem& problem, int64_t stored) const {
  std::vector<std::string> texts;
  for (const Sampled& response : responses) texts.push_back(response_text(tokenizer_, response.token));
  std::vector<Answer> answers;
  for (const std::string& text : texts) answers.push_back({text, &problem.gold});
  std::vector<Verdict> verdicts = verifier_.grade(answers);
  verifier_.classify(verdicts);

  Tally out;
  std::vector<char> right;
  std::vector<int32_t> classes;
  for (size_t i = 0; i < responses.size(); ++i) {
    const Sampled& response = responses[i];
    Verdict& verdict = verdicts[i];
    if (!response.finished && config_.truncated == EvalConfig::Truncated::wrong && verdict.kind == VerdictKind::equal) {
      verdict.kind = VerdictKind::unequal;
    }
    right.push_back(verdict.kind == VerdictKind::equal);
    classes.push_back(verdict.answer_class);
    const auto length = static_cast<int64_t>(response.token.size());
    ++out.responses;
    out.correct += right.back();
    if (static_cast<int64_t>(i) < kUsualSamples) out.correct_of_first += right.back();
    out.tokens += length;
    out.truncated += !response.finished;
    out.unparseable += verdict.kind == VerdictKind::unparseable;
    for (float h : response.entropy) out.entropy += h;
    if (static_cast<int64_t>(i) < stored) {
      out.stored.push_back({texts[i], verdict.answer, verdict.kind, length, response.finished});
    }
  }
  if (const auto vote = majority(classes)) out.majority_right = right[*vote];
  return out;
}

// Where all problems agree on 0 or 1 a bootstrap has no width and would feign certainty; the exact interval of that
// many yes/no trials stands in.
Estimate Assessment::interval_of_mean(const std::vector<double>& values) const {
  constexpr double kUnmeasured = std::numeric_limits<double>::quiet_NaN();
  const Summary summary = summarize(values);
  if (config_.bootstrap_draws == 0) return {summary.mean, kUnmeasured, kUnmeasured};
  const bool extreme = summary.min == summary.max && (summary.min == 0 || summary.max == 1);
  const Interval interval =
      extreme ? clopper_pearson(summary.max == 1 ? summary.count : 0, summary.count, config_.confidence_level)
              : bootstrap_mean(values, static_cast<uint64_t>(config_.seed), config_.confidence_level,
                               config_.bootstrap_draws);
  return {summary.mean, interval.low, interval.high};
}

EvalFigures Assessment::figures(const std::vector<size_t>& problems) const {
  EvalFigures out;
  out.problems = static_cast<int64_t>(problems.size());
  if (problems.empty()) return out;
  if (!greedy_.empty()) {
    int64_t correct = 0;
    for (size_t i : problems) correct += greedy_[i].correct;
    const auto interval = clopper_pearson(correct, out.problems, config_.confidence_level);
    out.greedy = {static_cast<double>(correct) / static_cast<double>(out.problems), interval.low, interval.high};
  }
  const auto over_problems = [&](auto value) {
    std::vector<double> values;
    for (size_t i : problems) values.push_back(value(sampled_[i]));
    return interval_of_mean(values);
  };
  if (!sampled_.empty()) {
    const int64_t n = config_.samples;
    if (n > kUsualSamples) {
      out.mean.push_back({kUsualSamples, over_problems([](const Tally& t) {
                            return mean_at_n({kUsualSamples, t.correct_of_first});
                          })});
    }
    out.mean.push_back({n, over_problems([](const Tally& t) { return mean_at_n({t.responses, t.correct}); })});
    out.majority.push_back({n, over_problems([](const Tally& t) { return t.majority_right ? 1.0 : 0.0; })});
    for (int64_t k : config_.ks) {
      if (k > n) continue;
      out.pass.push_back({k, over_problems([k](const Tally& t) { return pass_at_k({t.responses, t.correct}, k); })});
    }
  }
  Tally sum;
  for (size_t i : problems) {
    const Tally& t = sampled_.empty() ? greedy_[i] : sampled_[i];
    sum.responses += t.responses;
    sum.tokens += t.tokens;
    sum.truncated += t.truncated;
    sum.unparseable += t.unparseable;
    sum.entropy += t.entropy;
  }
  const auto responses = static_cast<double>(std::max<int64_t>(sum.responses, 1));
  out.entropy = sum.entropy / static_cast<double>(std::max<int64_t>(sum.tokens, 1));
  out.length = static_cast<double>(sum.tokens) / responses;
  out.truncated_share = static_cast<double>(sum.truncated) / responses;
  out.unparseable_share = static_cast<double>(sum.unparseable) / responses;
  return out;
}

std::vector<EvalRow> Assessment::rows() {
  std::vector<EvalRow> out;
  for (size_t i = 0; i < input_.problems.size(); ++i) {
    const Problem& problem = input_.problems[i];
    EvalRow& row = out.emplace_back();
    row.id = problem.id;
    row.source = problem.source;
    row.problem = problem.text;
    row.gold = problem.gold;
    if (!greedy_.empty()) row.greedy = std::move(greedy_[i].stored.front());
    const Tally& all = sampled_.empty() ? greedy_[i] : sampled_[i];
    row.mean_length = static_cast<double>(all.tokens) / static_cast<double>(all.responses);
    if (sampled_.empty()) continue;
    row.samples = all.responses;
    row.correct = all.correct;
    row.responses = std::move(sampled_[i].stored);
  }
  return out;
}

}  // namespace

EvalResult evaluate(Rollout& rollout, const Tokenizer& tokenizer, const Verifier& verifier, const EvalInput& input,
                    const EvalConfig& config) {
  if (!config.greedy && config.samples == 0) {
    throw Error("config", "greedy = false and samples = 0: nothing to evaluate; ask for one of them");
  }
  return Assessment(rollout, tokenizer, verifier, input, config).run();
}

}  // namespace ucas

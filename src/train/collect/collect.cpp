#include "train/collect/collect.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "rollout/policy.h"
#include "verify/grader.h"

namespace ucas {

namespace {

// A prompt with its responses, before it is known whether the step trains on them.
struct Candidate {
  int64_t problem = 0;
  std::vector<Episode> sampled = {};
  std::vector<std::string> text = {};
  std::vector<Response> response = {};  // with verdict, score and reward; their place in the batch comes last
};

std::vector<Candidate> generate(const Collector& c, int64_t step, const std::vector<int64_t>& problems,
                                std::map<int64_t, int64_t>& times_sampled) {
  const TrainRolloutConfig& rollout = c.config.rollout;
  std::vector<Candidate> candidates;
  if (problems.empty()) return candidates;
  std::vector<PromptJob> jobs;
  for (int64_t p : problems) {
    candidates.push_back({.problem = p});
    // A problem that comes twice in one step (a small data set) must not sample the same responses again.
    const int64_t first_sample = times_sampled[p]++ * rollout.n;
    jobs.push_back({.prompt = c.data.prompt[p],
                    .problem = static_cast<uint32_t>(p),
                    .samples = rollout.n,
                    .first_sample = static_cast<uint32_t>(first_sample),
                    .asked = &c.data.problems[p]});
  }
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling = rollout.sampling();
  request.seed = static_cast<uint64_t>(c.config.seed);
  request.step = static_cast<uint32_t>(step);
  request.limits.stop_ids = c.stop_ids;
  request.limits.ends = c.ends;
  request.limits.should_stop = c.should_stop;
  request.name_of = [&](int64_t job) { return printable(c.data.problems[candidates[job].problem].id, 60); };
  for (Episode& s : c.rollout.run(request)) {
    Candidate& candidate = candidates[s.job];
    candidate.text.push_back(graded_text(c.tokenizer, s.token, s.finished, c.stop_ids));
    Response o;
    o.length = static_cast<int64_t>(s.token.size());
    o.sample = s.sample;
    o.finished = s.finished;
    o.inserts = s.inserts;
    candidate.response.push_back(o);
    candidate.sampled.push_back(std::move(s));
  }
  return candidates;
}

const std::vector<std::string>& gold_of(const Collector& c, const Candidate& candidate) {
  return c.data.problems[candidate.problem].gold;
}

void classify(const Grader& verifier, std::vector<Response>& group) {
  std::vector<Verdict> verdicts;
  for (const Response& o : group) verdicts.push_back(o.verdict);
  verifier.classify(verdicts);
  for (size_t i = 0; i < group.size(); ++i) group[i].verdict.answer_class = verdicts[i].answer_class;
}

// Without the responses whose reward is None. Where fewer are left than the method needs, none of the group learns.
int64_t leave_out_unscored(const Collector& c, Candidate& candidate) {
  std::vector<Response>& group = candidate.response;
  const int64_t none = std::ranges::count(group, false, &Response::scored);
  if (none == 0) return 0;
  if (std::ssize(group) - none < std::max<int64_t>(2, c.config.needs().responses)) {
    const auto one = std::ranges::find(group, true, &Response::scored);
    const float reward = one == group.end() ? 0 : one->reward;
    for (Response& o : group) {
      o.trained = false;
      o.reward = reward;
    }
    return none;
  }
  size_t kept = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    if (!group[i].scored) continue;
    if (kept != i) {
      group[kept] = std::move(group[i]);
      candidate.text[kept] = std::move(candidate.text[i]);
      candidate.sampled[kept] = std::move(candidate.sampled[i]);
    }
    ++kept;
  }
  group.resize(kept);
  candidate.text.resize(kept);
  candidate.sampled.resize(kept);
  return none;
}

void grade(const Collector& c, std::vector<Candidate>& candidates) {
  std::vector<GroupToScore> groups;
  for (Candidate& candidate : candidates) {
    const auto p = static_cast<size_t>(candidate.problem);
    groups.push_back({c.data.problems[p], candidate.text, candidate.response, {}, c.data.row_of(p)});
    for (const Episode& episode : candidate.sampled) groups.back().ids.emplace_back(episode.token);
  }
  c.rewards.score(groups);
  int64_t none = 0;
  for (Candidate& candidate : candidates) none += leave_out_unscored(c, candidate);
  if (none > 0) {
    warn(str(c.config.reward.scorer(), ": no score (None) for ", many(none, "response"), ": left out of their groups"));
  }
  if (!c.answer_classes) return;
  for (Candidate& candidate : candidates) {
    classify(c.graders.for_source(c.data.problems[candidate.problem].source), candidate.response);
  }
}

constexpr size_t kShownUnreadable = 64;  // responses of a step that are kept for a message

void count(const Collector& c, const std::vector<Candidate>& candidates, CollectStats& stats) {
  stats.groups_generated += static_cast<int64_t>(candidates.size());
  for (const Candidate& candidate : candidates) {
    const auto responses = static_cast<int64_t>(candidate.response.size());
    stats.responses += responses;
    int64_t right = 0;
    for (const Response& o : candidate.response) {
      stats.truncated += o.finished ? 0 : 1;
      stats.generated_tokens += o.length;
      stats.inserts += std::ssize(o.inserts);
      stats.inserted_tokens += inserted_tokens(o.inserts);
      right += o.verdict.kind == VerdictKind::equal ? 1 : 0;
    }
    if (gold_of(c, candidate).empty() && !c.rewards.judges_all()) continue;
    stats.graded += responses;
    for (size_t i = 0; i < candidate.response.size(); ++i) {
      const VerdictKind kind = candidate.response[i].verdict.kind;
      ++stats.verdicts[static_cast<size_t>(kind)];
      const bool shown = kind == VerdictKind::unparseable && stats.unreadable.size() < kShownUnreadable;
      if (shown) stats.unreadable.push_back(candidate.text[i]);
    }
    stats.solve_all += right == responses ? 1 : 0;
    stats.solve_none += right == 0 ? 1 : 0;
    const bool alike = std::ranges::all_of(candidate.response,
                                           [&](const Response& o) { return o.reward == candidate.response[0].reward; });
    stats.dead += alike && (right == responses || right == 0) ? 1 : 0;
  }
}

// One generation batch, graded. nullopt: the run was interrupted.
std::optional<std::vector<Candidate>> sample_batch(const Collector& c, int64_t step,
                                                   const std::vector<int64_t>& problems,
                                                   std::map<int64_t, int64_t>& times_sampled, CollectStats& stats) {
  double began = now_seconds();
  set_phase(str("step ", step, ", generating"));
  std::vector<Candidate> candidates = generate(c, step, problems, times_sampled);
  stats.seconds_gen += now_seconds() - began;
  const bool stops = c.should_stop && c.should_stop();
  if (c.agree ? c.agree(stops) : stops) return std::nullopt;
  began = now_seconds();
  set_phase(str("step ", step, ", grading"));
  grade(c, candidates);  // R_i
  for (const Candidate& candidate : candidates) {
    for (const Response& o : candidate.response) note_over_budget({&o.verdict, 1});
  }
  count(c, candidates, stats);
  stats.seconds_reward += now_seconds() - began;
  return candidates;
}

// Decides which prompts pass, and holds those that the step may train on, by number of arrival.
SamplingAction hold(const TrainConfig& config, std::vector<Candidate> candidates, DynamicSampling& sampling,
                    std::map<int64_t, Candidate>& held) {
  std::vector<PromptOutcome> outcomes;
  for (const Candidate& candidate : candidates) {
    outcomes.push_back(outcome_of(candidate.response, config.objective.keep_metric));
  }
  int64_t number = sampling.arrived();
  const SamplingAction action = sampling.add(outcomes);
  for (Candidate& candidate : candidates) {
    if (sampling.may_train(number)) held.emplace(number, std::move(candidate));
    ++number;
  }
  return action;
}

// Lays a prompt's responses at the end of the step's batch.
void append(Candidate from, const TrainingSet& data, Truncated truncated, Collected& into) {
  Batch& batch = into.batch;
  const auto group = static_cast<int64_t>(batch.groups.size());
  batch.groups.push_back({.problem = from.problem,
                          .first = static_cast<int64_t>(batch.responses.size()),
                          .count = static_cast<int64_t>(from.response.size()),
                          .prompt = data.prompt[from.problem]});
  auto lay = [](const auto& values, auto& packed) { packed.insert(packed.end(), values.begin(), values.end()); };
  for (size_t i = 0; i < from.response.size(); ++i) {
    Response& o = from.response[i];
    o.first = batch.token_count();
    o.group = group;
    o.trained = o.trained && (o.finished || truncated != Truncated::mask);
    lay(from.sampled[i].token, batch.token);
    lay(from.sampled[i].logprob, batch.rollout_logprob);
    lay(from.sampled[i].whole_logprob, batch.rollout_whole_logprob);
    lay(from.sampled[i].entropy, batch.entropy);
    lay(from.sampled[i].confidence, batch.confidence);
    lay(from.sampled[i].logit, batch.logit);
    batch.responses.push_back(std::move(o));
    into.text.push_back(std::move(from.text[i]));
  }
}

// Nothing was kept for so long that going on would be in vain.
[[noreturn]] void refuse_to_go_on(const KeepRule& rule, const CollectStats& stats, int64_t problems) {
  double graded = static_cast<double>(std::max<int64_t>(1, stats.graded));
  throw Error(ErrorKind::no_signal,
              str("a whole epoch (", problems, " problems) gave no group with ", rule.words(),
                  ": the problems are too hard or too easy for this model, or the answers cannot be parsed (",
                  percent(static_cast<double>(stats.verdicts[2]) / graded),
                  " unparseable); look at rollouts/, try other problems, a larger rollout.n, or "
                  "objective.keep_mixed_groups = false (keep_low = 0, keep_high = 1)"),
              kNumeric);
}

[[noreturn]] void refuse_short_batch(const KeepRule& rule, int64_t kept) {
  throw Error(ErrorKind::no_signal,
              str("only ", kept, " of data.train_batch_size = ", rule.wanted, " prompts showed ", rule.words(),
                  " in data.max_num_gen_batches = ", rule.max_gen_batches,
                  " generation batches: raise that limit or data.gen_batch_size, or train on fewer prompts with "
                  "data.train_short = true"),
              kNumeric);
}

// The groups that are trained on become the step's batch; what is left over is dropped.
void make_batch(const Collector& collector, const DynamicSampling& sampling, std::map<int64_t, Candidate> held,
                Collected& result) {
  CollectStats& stats = result.stats;
  result.batch.stop_ids = collector.stop_ids;
  result.batch.reward_terms = collector.rewards.terms();
  for (int64_t number : sampling.trained()) {
    append(std::move(held.extract(number).mapped()), collector.data, collector.config.reward.truncated, result);
  }
  stats.groups_trained = static_cast<int64_t>(result.batch.groups.size());
  if (stats.graded > 0) {
    stats.correct_share = static_cast<double>(stats.verdicts[0]) / static_cast<double>(stats.graded);
  }
}

}  // namespace

PromptOutcome outcome_of(std::span<const Response> group, KeepMetric metric) {
  PromptOutcome outcome;
  int64_t rights = 0;
  for (const Response& o : group) {
    double right = o.verdict.kind == VerdictKind::equal ? 1 : 0;
    outcome.metric.push_back(metric == KeepMetric::acc ? right : metric == KeepMetric::score ? o.score : o.reward);
    rights += o.verdict.kind == VerdictKind::equal;
    outcome.longest = std::max(outcome.longest, o.length_with_inserts());
  }
  outcome.accuracy = static_cast<double>(rights) / static_cast<double>(group.size());
  return outcome;
}

Collected Collector::collect(int64_t step, DataCursor& cursor) const {
  const KeepRule rule = config.keep_rule();
  DynamicSampling sampling(rule);
  std::map<int64_t, Candidate> held;
  std::map<int64_t, int64_t> times_sampled;
  Collected result;
  CollectStats& stats = result.stats;
  stats.multi_turn = config.rollout.environment.some();
  int64_t since_kept = 0;  // prompts generated
  SamplingAction action = SamplingAction::more;
  while (action == SamplingAction::more) {
    auto sampled = sample_batch(*this, step, next_problems(config, data.size(), cursor), times_sampled,
                                stats);  // o_i ~ pi_old, R_i
    if (!sampled) {
      result.stopped = true;
      return result;
    }
    const int64_t kept_before = stats.groups_kept, fresh = std::ssize(*sampled);
    action = hold(config, std::move(*sampled), sampling, held);
    stats.gen_batches = sampling.gen_batches();
    stats.groups_kept = static_cast<int64_t>(sampling.kept().size());
    if (on_batch) on_batch(stats, std::min<int64_t>(rule.wanted, static_cast<int64_t>(held.size())));

    since_kept = stats.groups_kept > kept_before ? 0 : since_kept + fresh;
    cursor.fruitless = held.empty() ? cursor.fruitless + fresh : 0;
    const bool over = action == SamplingAction::more && prompts_left(config, data.size(), cursor) == 0;
    // Without a limit of generation batches, an epoch in vain is one even if something was kept before it.
    const bool in_vain =
        action == SamplingAction::more && !over && rule.max_gen_batches == 0 && since_kept >= data.size();
    if (in_vain || (cursor.fruitless >= data.size() && cursor.fruitless > 0)) {
      refuse_to_go_on(rule, stats, data.size());
    }
    if (over) {
      result.out_of_prompts = !rule.train_short;
      action = SamplingAction::train;
    }
  }
  if (action == SamplingAction::abort) refuse_short_batch(rule, static_cast<int64_t>(sampling.kept().size()));
  if (!result.out_of_prompts) make_batch(*this, sampling, std::move(held), result);
  return result;
}

}  // namespace ucas

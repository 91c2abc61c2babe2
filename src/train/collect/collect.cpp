#include "train/collect/collect.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "rollout/policy.h"
#include "train/collect/early_stop.h"
#include "verify/grader.h"

namespace ucas {

namespace {

// A prompt with its responses, before it is known whether the step trains on them.
struct Candidate {
  int64_t problem = 0;
  int64_t step = 0;  // that sampled them; 0: this one
  std::vector<Episode> sampled = {};
  std::vector<std::string> text = {};
  std::vector<Response> response = {};  // with verdict, score and reward; their place in the batch comes last
};

Rewards::Key key_of(int64_t problem, int64_t sample) { return {problem, static_cast<uint32_t>(sample)}; }

// Without the stop token, with a stop text.
std::span<const int32_t> ids_of_text(const Collector& c, std::span<const int32_t> ids, bool finished) {
  const bool by_token = finished && !ids.empty() && std::ranges::find(c.stop_ids, ids.back()) != c.stop_ids.end();
  return by_token ? ids.first(ids.size() - 1) : ids;
}
std::string text_of(const Collector& c, std::span<const int32_t> ids, bool finished) {
  return response_text(c.tokenizer, ids_of_text(c, ids, finished));
}

// early: null, or where what is sampled is noted and what is not needed is asked for; its prompts are not given.
std::vector<Candidate> generate(const Collector& c, int64_t step, const std::vector<int64_t>& problems,
                                std::map<int64_t, int64_t>& times_sampled, EarlyStop* early) {
  const TrainRolloutConfig& rollout = c.config.rollout;
  std::vector<Candidate> candidates;
  if (problems.empty()) return candidates;
  std::vector<PromptJob> jobs;
  for (int64_t p : problems) {
    candidates.push_back({.problem = p});
    // A problem that comes twice in one step (a small data set) must not draw the same samples again.
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
  request.sink.on_own_response = [&](const Episode& s) {
    const int64_t p = candidates[s.job].problem;
    const auto ids = ids_of_text(c, s.token, s.finished);
    // What a run that ends by an error leaves behind goes on without this collector.
    c.rewards.begin(c.data.problems[p], key_of(p, s.sample),
                    [&tokenizer = c.tokenizer, ids = std::vector<int32_t>(ids.begin(), ids.end())] {
                      return response_text(tokenizer, ids);
                    });
    if (early != nullptr) early->ended(s);
  };
  if (early != nullptr) {
    request.sink.on_aborted = [early](const Episode& s) { early->aborted(s); };
    request.limits.needed_jobs = [early] { return early->needed(); };
  }
  for (Episode& s : c.rollout.run(request)) {
    Candidate& candidate = candidates[s.job];
    const GradedEarly* begun = c.rewards.begun(key_of(candidate.problem, s.sample));
    candidate.text.push_back(begun != nullptr ? begun->text : text_of(c, s.token, s.finished));
    Response o;
    o.length = static_cast<int64_t>(s.token.size());
    o.sample = s.sample;
    o.finished = s.finished;
    o.inserts = s.inserts;
    candidate.response.push_back(o);
    candidate.sampled.push_back(std::move(s));
  }
  if (early != nullptr) {  // whole groups, the first ones
    candidates.erase(std::ranges::find_if(candidates, [](const Candidate& one) { return one.response.empty(); }),
                     candidates.end());
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

void grade(const Collector& c, std::vector<Candidate>& candidates) {
  std::vector<PaidGroup> groups;
  std::vector<Rewards::Key> keys;
  for (Candidate& candidate : candidates) {
    groups.push_back({c.data.problems[candidate.problem], candidate.text, candidate.response});
    if (candidate.sampled.size() == candidate.text.size()) {
      for (const Episode& episode : candidate.sampled) groups.back().ids.emplace_back(episode.token);
    }
    for (const Response& o : candidate.response) keys.push_back(key_of(candidate.problem, o.sample));
  }
  c.rewards.pay(groups, keys);
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
  }
}

// The prompts after the one that completes the step are dropped.
void drop_unneeded(const TrainConfig& config, int64_t wanted, std::vector<Candidate>& candidates) {
  const KeepRule rule = config.keep_rule();
  int64_t passed = 0;
  const auto completes = std::ranges::find_if(candidates, [&](const Candidate& one) {
    passed += passes(rule, outcome_of(one.response, config.objective.keep_metric)) ? 1 : 0;
    return passed == wanted;
  });
  if (completes != candidates.end()) candidates.erase(completes + 1, candidates.end());
}

int64_t sampled_tokens(const std::vector<Candidate>& candidates) {
  int64_t tokens = 0;
  for (const Candidate& candidate : candidates) {
    for (const Response& o : candidate.response) tokens += o.length;
  }
  return tokens;
}

// The next generation batch, and what undoes its selection.
class NextPrompts {
 public:
  NextPrompts(const Collector& c, DataCursor& cursor) : c_(c), cursor_(cursor) {
    if (c.config.rollout.stop_early) before_ = cursor;
    problem = next_problems(c.config, c.data, cursor);
  }

  // As if the batch had been its first `count` prompts.
  void leave(int64_t count) {
    cursor_ = before_;
    next_problems(c_.config, c_.data, cursor_, count);
  }

  std::vector<int64_t> problem;

 private:
  const Collector& c_;
  DataCursor& cursor_;
  DataCursor before_ = {};
};

// One generation batch, graded. Of early stopping the prompts up to the last that the step trains on; which these are,
// the responses alone say. nullopt: the run was told to stop.
std::optional<std::vector<Candidate>> sample_batch(const Collector& c, int64_t step, int64_t wanted,
                                                   NextPrompts& prompts, std::map<int64_t, int64_t>& times_sampled,
                                                   CollectStats& stats) {
  double began = now_seconds();
  set_phase(str("step ", step, ", generating"));
  std::optional<EarlyStop> early;
  if (c.config.rollout.stop_early) {
    std::vector<EarlyStop::Prompt> all;
    for (const int64_t p : prompts.problem) all.push_back({c.data.problems[p], p});
    early.emplace(c.config, c.rewards, c.rewards.ranks(), std::move(all), wanted);
  }
  std::vector<Candidate> candidates = generate(c, step, prompts.problem, times_sampled, early ? &*early : nullptr);
  stats.seconds_gen += now_seconds() - began;
  const bool stops = c.should_stop && c.should_stop();
  if (c.agree ? c.agree(stops) : stops) return std::nullopt;
  began = now_seconds();
  set_phase(str("step ", step, ", grading"));
  grade(c, candidates);  // R_i
  if (early) {
    drop_unneeded(c.config, wanted, candidates);
    stats.aborted_tokens += early->sampled_tokens_of_ranks() - sampled_tokens(candidates);
    if (c.config.rollout.carry_over) prompts.leave(std::ssize(candidates));
  }
  for (const Candidate& candidate : candidates) {
    for (const Response& o : candidate.response) note_over_budget({&o.verdict, 1});
  }
  count(c, candidates, stats);
  stats.seconds_reward += now_seconds() - began;
  return candidates;
}

// Decides which prompts pass, and holds those that this step or the next may train on, by number of arrival.
SamplingAction hold(const TrainConfig& config, std::vector<Candidate> candidates, DynamicSampling& sampling,
                    std::map<int64_t, Candidate>& held) {
  std::vector<PromptOutcome> outcomes;
  for (const Candidate& candidate : candidates) {
    outcomes.push_back(outcome_of(candidate.response, config.objective.keep_metric));
  }
  int64_t number = sampling.arrived();
  const SamplingAction action = sampling.add(outcomes);
  for (Candidate& candidate : candidates) {
    const bool carried_over = config.rollout.carry_over && sampling.passed(number);
    if (carried_over || sampling.may_train(number)) held.emplace(number, std::move(candidate));
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
                          .prompt = data.prompt[from.problem],
                          .step = from.step});
  auto lay = [](const auto& values, auto& packed) { packed.insert(packed.end(), values.begin(), values.end()); };
  for (size_t i = 0; i < from.response.size(); ++i) {
    Response& o = from.response[i];
    o.first = batch.token_count();
    o.group = group;
    o.trained = o.finished || truncated != Truncated::mask;
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

// The other way: what a step before left.
Candidate taken_up(const Collector& c, const Batch& carried_over, const Group& group) {
  Candidate candidate{.problem = group.problem, .step = group.step};
  const auto copy = [](const std::vector<float>& values, const Response& o) {
    const auto its = values.empty() ? std::span<const float>() : Batch::tokens(values, o);
    return std::vector<float>(its.begin(), its.end());
  };
  for (const Response& o : carried_over.of(group)) {
    const auto ids = Batch::tokens(carried_over.token, o);
    candidate.text.push_back(text_of(c, ids, o.finished));
    candidate.response.push_back(o);
    candidate.sampled.push_back({.sample = static_cast<uint32_t>(o.sample),
                                 .finished = o.finished,
                                 .token = {ids.begin(), ids.end()},
                                 .logprob = copy(carried_over.rollout_logprob, o),
                                 .whole_logprob = copy(carried_over.rollout_whole_logprob, o),
                                 .entropy = copy(carried_over.entropy, o),
                                 .confidence = copy(carried_over.confidence, o),
                                 .logit = copy(carried_over.logit, o)});
  }
  return candidate;
}

// The step begins with what the one before left; nothing is carried further than one step.
SamplingAction begin(const Collector& c, const Batch& carried_over, DynamicSampling& sampling,
                     std::map<int64_t, Candidate>& held) {
  for (const Group& group : carried_over.groups) held.emplace(std::ssize(held), taken_up(c, carried_over, group));
  return sampling.begin(std::ssize(held));
}

// What was sampled in this step, passed and is not trained on.
Batch left_over(const Collector& c, std::map<int64_t, Candidate> held, int64_t step) {
  Collected left;
  for (auto& [number, candidate] : held) {
    if (candidate.step > 0) continue;
    candidate.step = step;
    append(std::move(candidate), c.data, c.config.reward.truncated, left);
  }
  left.batch.reward_terms = c.rewards.terms();
  return std::move(left.batch);
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

// The groups that are trained on become the step's batch; what is left over waits in the cursor.
void make_batch(const Collector& collector, DynamicSampling& sampling, std::map<int64_t, Candidate> held,
                int64_t carried, int64_t step, DataCursor& cursor, Collected& result) {
  CollectStats& stats = result.stats;
  result.batch.stop_ids = collector.stop_ids;
  result.batch.reward_terms = collector.rewards.terms();
  for (int64_t number : sampling.trained()) {
    append(std::move(held.extract(number).mapped()), collector.data, collector.config.reward.truncated, result);
  }
  stats.groups_carried = std::ranges::count_if(result.batch.groups, [](const Group& g) { return g.step > 0; });
  stats.groups_late = carried - stats.groups_carried;
  if (collector.config.rollout.carry_over) cursor.carry_over = left_over(collector, std::move(held), step);
  stats.groups_left = static_cast<int64_t>(cursor.carry_over.groups.size());
  stats.groups_trained = static_cast<int64_t>(result.batch.groups.size());
  if (stats.graded > 0) {
    stats.correct_share = static_cast<double>(stats.verdicts[0]) / static_cast<double>(stats.graded);
  }
}

}  // namespace

int64_t prompts_left(const TrainConfig& config, int64_t problems, const DataCursor& cursor) {
  if (!config.uses_passes()) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(0, config.train.epochs * problems - cursor.selected(problems));
}

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
  stats.stop_early = config.rollout.stop_early;
  int64_t since_kept = 0;  // prompts generated
  const Batch carried_over = std::exchange(cursor.carry_over, {});
  const auto carried = static_cast<int64_t>(carried_over.groups.size());
  SamplingAction action = begin(*this, carried_over, sampling, held);
  while (action == SamplingAction::more) {
    NextPrompts prompts(*this, cursor);
    const int64_t missing = rule.wanted - std::ssize(sampling.kept());
    auto sampled = sample_batch(*this, step, missing, prompts, times_sampled, stats);  // o_i ~ pi_old, R_i
    if (!sampled) {
      result.stopped = true;
      return result;
    }
    const int64_t kept_before = stats.groups_kept, fresh = std::ssize(*sampled);
    action = hold(config, std::move(*sampled), sampling, held);
    stats.gen_batches = sampling.gen_batches();
    stats.groups_kept = static_cast<int64_t>(sampling.kept().size()) - carried;
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
  if (!result.out_of_prompts) make_batch(*this, sampling, std::move(held), carried, step, cursor, result);
  return result;
}

std::vector<int64_t> next_problems(const TrainConfig& config, const TrainingSet& data, DataCursor& cursor,
                                   int64_t most) {
  const int64_t total = data.size();
  const auto count = static_cast<size_t>(std::min(config.gen_batch(), most));
  std::vector<int64_t> picked, order;
  int64_t order_epoch = -1;
  while (picked.size() < count && prompts_left(config, total, cursor) > 0) {
    if (cursor.index >= total) {
      cursor.index = 0;
      ++cursor.epoch;
    }
    if (order_epoch != cursor.epoch && config.data.shuffle) {
      order = epoch_order(static_cast<uint64_t>(config.seed), cursor.epoch, total);
      order_epoch = cursor.epoch;
    }
    picked.push_back(config.data.shuffle ? order[cursor.index] : cursor.index);
    ++cursor.index;
  }
  return picked;
}

}  // namespace ucas

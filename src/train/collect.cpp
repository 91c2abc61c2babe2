#include "train/collect.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "rollout/policy.h"

namespace ucas {

namespace {

// The next `count` problems in keyed epoch order, across epochs.
std::vector<int64_t> next_problems(const TrainConfig& config, int64_t total, int64_t count, DataCursor& cursor) {
  std::vector<int64_t> picked, order;
  int64_t order_epoch = -1;
  while (static_cast<int64_t>(picked.size()) < count) {
    if (cursor.index >= total) {
      cursor.index = 0;
      ++cursor.epoch;
    }
    if (order_epoch != cursor.epoch && config.data.shuffle) {
      order = epoch_order(static_cast<uint64_t>(config.seed), cursor.epoch, total);
      order_epoch = cursor.epoch;
    }
    picked.push_back(config.data.shuffle ? order[static_cast<size_t>(cursor.index)] : cursor.index);
    ++cursor.index;
  }
  return picked;
}

// One generation batch: `groups` of responses with texts and rewards, in prompt order.
struct Generated {
  Batch batch;
  std::vector<std::string> text;
};

void append_response(Batch& batch, const Sampled& sampled) {
  Response response;
  response.first = batch.token_count();
  response.length = static_cast<int64_t>(sampled.token.size());
  response.group = static_cast<int64_t>(batch.groups.size()) - 1;
  response.sample = sampled.sample;
  response.finished = sampled.finished;
  batch.responses.push_back(response);
  batch.token.insert(batch.token.end(), sampled.token.begin(), sampled.token.end());
  batch.rollout_logprob.insert(batch.rollout_logprob.end(), sampled.logprob.begin(), sampled.logprob.end());
  batch.rollout_whole_logprob.insert(batch.rollout_whole_logprob.end(), sampled.whole_logprob.begin(),
                                     sampled.whole_logprob.end());
}

Generated generate(const Collector& c, int64_t step, const std::vector<int64_t>& problems,
                   std::map<int64_t, int64_t>& times_drawn) {
  std::vector<PromptJob> jobs;
  for (int64_t p : problems) {
    PromptJob job;
    job.prompt = c.data.prompt[static_cast<size_t>(p)];
    job.problem = static_cast<uint32_t>(p);
    job.samples = c.config.rollout.n;
    // A problem that comes twice in one step (a small data set) must not draw the same samples again.
    job.first_sample = static_cast<uint32_t>(times_drawn[p]++ * c.config.rollout.n);
    jobs.push_back(job);
  }
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling = {c.config.rollout.temperature, c.config.rollout.top_p, c.config.rollout.top_k,
                      c.config.rollout.response_length};
  request.seed = static_cast<uint64_t>(c.config.seed);
  request.step = static_cast<uint32_t>(step);
  request.stop_ids = c.stop_ids;
  request.should_stop = c.should_stop;
  std::vector<Sampled> sampled = c.rollout.run(request);

  Generated made;
  for (const Sampled& s : sampled) {
    auto job = static_cast<size_t>(s.job);
    if (made.batch.groups.empty() || made.batch.groups.back().problem != problems[job] ||
        made.batch.groups.back().count == c.config.rollout.n) {
      Group group;
      group.problem = problems[job];
      group.first = static_cast<int64_t>(made.batch.responses.size());
      group.prompt = c.data.prompt[static_cast<size_t>(problems[job])];
      made.batch.groups.push_back(std::move(group));
    }
    ++made.batch.groups.back().count;
    append_response(made.batch, s);
    std::span<const int32_t> ids(s.token);
    made.text.push_back(response_text(c.tokenizer, s.finished && !ids.empty() ? ids.first(ids.size() - 1) : ids));
  }
  return made;
}

const std::vector<std::string>& gold_of(const Collector& c, const Generated& made, const Response& o) {
  auto problem = static_cast<size_t>(made.batch.groups[static_cast<size_t>(o.group)].problem);
  return c.data.problems[problem].gold;
}

void grade(const Collector& c, Generated& made) {
  std::vector<Answer> answers;
  for (size_t i = 0; i < made.text.size(); ++i) {
    answers.push_back({made.text[i], &gold_of(c, made, made.batch.responses[i])});
  }
  std::vector<Verdict> verdicts = c.verifier.grade(answers);
  const RewardConfig& reward = c.config.reward;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    Response& o = made.batch.responses[i];
    o.verdict = std::move(verdicts[i]);
    if (answers[i].gold->empty()) o.verdict.reason = "the problem has no right answer to compare with";
    if (!o.finished && reward.truncated == Truncated::wrong && o.verdict.kind == VerdictKind::equal) {
      o.verdict.kind = VerdictKind::unequal;
      o.verdict.reason = "right, but cut at the length limit";
    }
    o.score = static_cast<float>(o.verdict.kind == VerdictKind::equal ? reward.correct : reward.wrong);
    o.reward = o.score + static_cast<float>(overlong_penalty(o.length, c.config.rollout.response_length,
                                                             reward.overlong_buffer, reward.overlong_factor));
  }
  if (!c.answer_classes) return;
  for (const Group& group : made.batch.groups) {
    std::vector<Verdict> classes;
    for (const Response& o : made.batch.of(group)) classes.push_back(o.verdict);
    c.verifier.classify(classes);
    for (int64_t i = 0; i < group.count; ++i) {
      made.batch.responses[static_cast<size_t>(group.first + i)].verdict.answer_class =
          classes[static_cast<size_t>(i)].answer_class;
    }
  }
}

void count(const Collector& c, const Generated& made, CollectStats& stats) {
  stats.groups_generated += static_cast<int64_t>(made.batch.groups.size());
  stats.responses += static_cast<int64_t>(made.batch.responses.size());
  stats.generated_tokens += made.batch.token_count();
  for (const Response& o : made.batch.responses) {
    stats.truncated += o.finished ? 0 : 1;
    if (gold_of(c, made, o).empty()) continue;
    ++stats.graded;
    ++stats.verdicts[static_cast<size_t>(o.verdict.kind)];
  }
  for (const Group& group : made.batch.groups) {
    if (gold_of(c, made, made.batch.of(group).front()).empty()) continue;
    int64_t right = 0;
    for (const Response& o : made.batch.of(group)) right += o.verdict.kind == VerdictKind::equal ? 1 : 0;
    stats.solve_all += right == group.count ? 1 : 0;
    stats.solve_none += right == 0 ? 1 : 0;
  }
}

// Moves one group with its tokens and texts to the end of the step's batch.
void keep(const Generated& made, const Group& group, Collected& into) {
  Batch& to = into.batch;
  Group kept = group;
  kept.first = static_cast<int64_t>(to.responses.size());
  to.groups.push_back(std::move(kept));
  for (int64_t i = group.first; i < group.first + group.count; ++i) {
    Response o = made.batch.responses[static_cast<size_t>(i)];
    auto token = Batch::tokens(made.batch.token, o);
    auto logprob = Batch::tokens(made.batch.rollout_logprob, o);
    std::span<const float> whole;
    if (!made.batch.rollout_whole_logprob.empty()) whole = Batch::tokens(made.batch.rollout_whole_logprob, o);
    o.first = to.token_count();
    o.group = static_cast<int64_t>(to.groups.size()) - 1;
    to.token.insert(to.token.end(), token.begin(), token.end());
    to.rollout_logprob.insert(to.rollout_logprob.end(), logprob.begin(), logprob.end());
    to.rollout_whole_logprob.insert(to.rollout_whole_logprob.end(), whole.begin(), whole.end());
    to.responses.push_back(std::move(o));
    into.text.push_back(made.text[static_cast<size_t>(i)]);
  }
}

// Nothing was kept for so long that going on would be in vain.
[[noreturn]] void refuse_to_go_on(const KeepRule& rule, const CollectStats& stats, int64_t problems) {
  double graded = static_cast<double>(std::max<int64_t>(1, stats.graded));
  throw Error("no_signal",
              str("a whole epoch (", problems, " problems) gave no group with ", rule.words(),
                  ": the problems are too hard or too easy for this model, or the answers cannot be parsed (",
                  percent(static_cast<double>(stats.verdicts[2]) / graded),
                  " unparseable); look at rollouts/, try other problems, a larger rollout.n, or "
                  "objective.keep_mixed_groups = false (keep_low = 0, keep_high = 1)"),
              kNumeric);
}

[[noreturn]] void refuse_short_batch(const KeepRule& rule, int64_t kept) {
  throw Error("no_signal",
              str("only ", kept, " of data.train_batch_size = ", rule.wanted, " prompts showed ", rule.words(),
                  " in data.max_num_gen_batches = ", rule.max_gen_batches,
                  " generation batches: raise that limit or data.gen_batch_size, or train on fewer prompts with "
                  "data.train_short = true"),
              kNumeric);
}

}  // namespace

int64_t prompts_left(const TrainConfig& config, int64_t problems, const DataCursor& cursor) {
  if (!config.uses_passes()) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(0, config.train.epochs * problems - cursor.drawn(problems));
}

PromptOutcome outcome_of(std::span<const Response> group, KeepMetric metric) {
  PromptOutcome outcome;
  int64_t rights = 0;
  for (const Response& o : group) {
    double right = o.verdict.kind == VerdictKind::equal ? 1 : 0;
    outcome.metric.push_back(metric == KeepMetric::acc ? right : metric == KeepMetric::score ? o.score : o.reward);
    rights += o.verdict.kind == VerdictKind::equal;
    outcome.longest = std::max(outcome.longest, o.length);
  }
  outcome.accuracy = static_cast<double>(rights) / static_cast<double>(group.size());
  return outcome;
}

Collected Collector::collect(int64_t step, DataCursor& cursor) const {
  KeepRule rule = config.keep_rule();
  DynamicSampling sampling(rule);
  Collected held;                // groups that may still be trained on
  std::vector<int64_t> numbers;  // theirs, in order of arrival
  CollectStats stats;
  std::map<int64_t, int64_t> times_drawn;
  auto total = static_cast<int64_t>(data.problems.size());
  int64_t since_kept = 0;  // prompts generated

  bool out_of_prompts = false;
  SamplingAction action = SamplingAction::more;
  while (action == SamplingAction::more) {
    double began = now_seconds();
    int64_t most = std::min(config.gen_batch(), prompts_left(config, total, cursor));  // the last batch may be smaller
    std::vector<int64_t> problems = next_problems(config, total, most, cursor);
    Generated made = generate(*this, step, problems, times_drawn);
    double generated = now_seconds();
    stats.seconds_gen += generated - began;
    if (should_stop && should_stop()) {
      held.stopped = true;
      held.stats = stats;
      return held;
    }
    grade(*this, made);
    count(*this, made, stats);
    std::vector<PromptOutcome> outcomes;
    for (const Group& group : made.batch.groups) {
      outcomes.push_back(outcome_of(made.batch.of(group), config.objective.keep_metric));
    }
    int64_t number = sampling.arrived(), kept_before = static_cast<int64_t>(sampling.kept().size());
    action = sampling.add(outcomes);
    for (const Group& group : made.batch.groups) {
      if (sampling.may_train(number)) {
        keep(made, group, held);
        numbers.push_back(number);
      }
      ++number;
    }
    stats.gen_batches = sampling.gen_batches();
    stats.groups_kept = static_cast<int64_t>(sampling.kept().size());
    auto fresh = static_cast<int64_t>(problems.size());
    since_kept = stats.groups_kept > kept_before ? 0 : since_kept + fresh;
    cursor.fruitless = numbers.empty() ? cursor.fruitless + fresh : 0;
    stats.seconds_reward += now_seconds() - generated;
    if (on_batch) on_batch(stats, std::min<int64_t>(rule.wanted, static_cast<int64_t>(numbers.size())));
    bool over = action == SamplingAction::more && prompts_left(config, total, cursor) == 0;
    // Without a limit of generation batches, an epoch in vain is one even if something was kept before it.
    bool in_vain = action == SamplingAction::more && !over && rule.max_gen_batches == 0 && since_kept >= total;
    if (in_vain || (cursor.fruitless >= total && cursor.fruitless > 0)) refuse_to_go_on(rule, stats, total);
    if (over) {
      out_of_prompts = !rule.train_short;
      action = SamplingAction::train;
    }
  }
  if (action == SamplingAction::abort) refuse_short_batch(rule, stats.groups_kept);
  if (out_of_prompts) {
    Collected nothing;
    nothing.out_of_prompts = true;
    nothing.stats = stats;
    return nothing;
  }

  Collected result;
  result.batch.stop_ids = stop_ids;
  Generated from{std::move(held.batch), std::move(held.text)};
  for (int64_t number : sampling.trained()) {
    auto at = std::ranges::lower_bound(numbers, number) - numbers.begin();
    keep(from, from.batch.groups[static_cast<size_t>(at)], result);
  }
  stats.groups_trained = static_cast<int64_t>(result.batch.groups.size());
  stats.correct_share =
      stats.graded == 0 ? 0 : static_cast<double>(stats.verdicts[0]) / static_cast<double>(stats.graded);
  result.stats = stats;
  return result;
}

}  // namespace ucas

#include "train/collect.h"

#include <algorithm>
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

void grade(const Collector& c, Generated& made) {
  std::vector<Answer> answers;
  for (size_t i = 0; i < made.text.size(); ++i) {
    auto problem = static_cast<size_t>(made.batch.groups[static_cast<size_t>(made.batch.responses[i].group)].problem);
    answers.push_back({made.text[i], &c.data.problems[problem].gold});
  }
  std::vector<Verdict> verdicts = c.verifier.grade(answers);
  const RewardConfig& reward = c.config.reward;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    Response& o = made.batch.responses[i];
    o.verdict = std::move(verdicts[i]);
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

void count(const Generated& made, CollectStats& stats) {
  stats.groups_generated += static_cast<int64_t>(made.batch.groups.size());
  stats.responses += static_cast<int64_t>(made.batch.responses.size());
  stats.generated_tokens += made.batch.token_count();
  for (const Response& o : made.batch.responses) {
    ++stats.verdicts[static_cast<size_t>(o.verdict.kind)];
    stats.truncated += o.finished ? 0 : 1;
  }
  for (const Group& group : made.batch.groups) {
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
    o.first = to.token_count();
    o.group = static_cast<int64_t>(to.groups.size()) - 1;
    to.token.insert(to.token.end(), token.begin(), token.end());
    to.rollout_logprob.insert(to.rollout_logprob.end(), logprob.begin(), logprob.end());
    to.responses.push_back(std::move(o));
    into.text.push_back(made.text[static_cast<size_t>(i)]);
  }
}

}  // namespace

bool is_mixed(std::span<const Response> group) {
  if (group.size() == 1) return true;
  auto right =
      std::count_if(group.begin(), group.end(), [](const Response& o) { return o.verdict.kind == VerdictKind::equal; });
  return right > 0 && right < static_cast<std::ptrdiff_t>(group.size());
}

double overlong_penalty(int64_t length, int64_t limit, int64_t buffer, double factor) {
  if (buffer <= 0) return 0;
  double beyond = static_cast<double>(length - (limit - buffer));
  return std::min(-beyond / static_cast<double>(buffer) * factor, 0.0);
}

Collected Collector::collect(int64_t step, DataCursor& cursor) const {
  Collected result;
  result.batch.stop_ids = stop_ids;
  CollectStats& stats = result.stats;
  std::map<int64_t, int64_t> times_drawn;
  auto total = static_cast<int64_t>(data.problems.size());
  int64_t wanted = config.data.train_batch_size;
  auto kept = [&] { return static_cast<int64_t>(result.batch.groups.size()); };

  while (kept() < wanted && stats.gen_batches < config.data.max_num_gen_batches) {
    double began = now_seconds();
    std::vector<int64_t> problems = next_problems(config, total, config.gen_batch(), cursor);
    Generated made = generate(*this, step, problems, times_drawn);
    double generated = now_seconds();
    stats.seconds_gen += generated - began;
    if (should_stop && should_stop()) {
      result.stopped = true;
      return result;
    }
    ++stats.gen_batches;
    grade(*this, made);
    count(made, stats);
    for (const Group& group : made.batch.groups) {
      if (config.objective.keep_mixed_groups && !is_mixed(made.batch.of(group))) continue;
      ++stats.groups_kept;
      if (kept() < wanted) keep(made, group, result);  // the surplus is discarded, as in DAPO's code
    }
    cursor.fruitless = stats.groups_kept > 0 ? 0 : cursor.fruitless + static_cast<int64_t>(problems.size());
    stats.seconds_reward += now_seconds() - generated;
    if (on_batch) on_batch(stats, kept());
    if (cursor.fruitless >= total && cursor.fruitless > 0) {
      throw Error("no_signal",
                  str("a whole epoch (", total,
                      " problems) gave no group with both right and wrong answers: the problems are "
                      "too hard or too easy for this model, or the answers cannot be parsed (",
                      percent(static_cast<double>(stats.verdicts[2]) /
                              static_cast<double>(std::max<int64_t>(1, stats.responses))),
                      " unparseable); look at rollouts/, try other problems, a larger rollout.n, or "
                      "objective.keep_mixed_groups = false"),
                  kNumeric);
    }
  }
  stats.groups_trained = kept();
  stats.correct_share =
      stats.responses == 0 ? 0 : static_cast<double>(stats.verdicts[0]) / static_cast<double>(stats.responses);
  return result;
}

}  // namespace ucas

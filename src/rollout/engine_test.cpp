#include "rollout/rollouter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "support/engine/fake_model.h"
#include "support/engine/rollout_requests.h"
#include "support/engine/small_models.h"

namespace ucas {

namespace {

using testing::FakeModel;
using testing::jobs_of;
using testing::random_prompts;
using testing::request_of;

}  // namespace

TEST(engine, results_are_ordered_by_job_and_sample_and_end_at_a_stop_or_the_limit) {
  FakeModel model;
  const auto prompts = random_prompts(7, 12, 23);
  const auto jobs = jobs_of(prompts, 5);
  const auto responses = make_engine(model, {.max_slots = 6})->run(request_of(jobs, {.max_tokens = 20}, {0, 3}));
  ASSERT_EQ(responses.size(), 35u);
  int64_t finished = 0;
  for (size_t i = 0; i < responses.size(); ++i) {
    const Episode& r = responses[i];
    EXPECT_EQ(r.job, static_cast<int64_t>(i / 5));
    EXPECT_EQ(r.sample, i % 5);
    ASSERT_FALSE(r.token.empty());
    for (const auto* column : {&r.logprob, &r.entropy, &r.confidence, &r.logit})
      EXPECT_EQ(column->size(), r.token.size());
    const auto is_stop = [](int32_t id) { return id == 0 || id == 3; };
    EXPECT_EQ(std::count_if(r.token.begin(), r.token.end(), is_stop), r.finished ? 1 : 0);
    EXPECT_EQ(is_stop(r.token.back()), r.finished);
    if (!r.finished) {
      EXPECT_EQ(r.token.size(), 20u);
    }
    finished += r.finished;
  }
  EXPECT_GT(finished, 0);
  EXPECT_LT(finished, 35);
}

TEST(engine, a_sequence_of_the_fake_model_is_what_drawing_step_by_step_gives) {
  FakeModel model;
  const auto prompts = random_prompts(3, 9, 23);
  const auto jobs = jobs_of(prompts, 4);
  const auto responses = make_engine(model, {.max_slots = 2})->run(request_of(jobs, {.max_tokens = 9}));
  for (const Episode& r : responses) {
    Packed packed;
    packed.token = prompts[static_cast<size_t>(r.job)];
    packed.token.insert(packed.token.end(), r.token.begin(), r.token.end());
    packed.begin = {0, static_cast<int64_t>(packed.token.size())};
    packed.position.resize(packed.token.size());
    std::iota(packed.position.begin(), packed.position.end(), 0);
    const at::Tensor hidden = model.hidden(packed);
    const auto prompt = static_cast<int64_t>(prompts[static_cast<size_t>(r.job)].size());
    const auto stats =
        model.head().stats(hidden.narrow(0, prompt - 1, static_cast<int64_t>(r.token.size())), r.token, 1.0);
    for (size_t t = 0; t < r.token.size(); ++t) {
      EXPECT_EQ(stats.logprob.data_ptr<float>()[t], r.logprob[t]) << "token " << t;
    }
  }
}

TEST(engine, each_prompt_is_prefilled_once_in_packs_under_the_budget) {
  FakeModel model;
  const auto prompts = random_prompts(40, 12, 23);
  int64_t total = 0;
  for (const auto& prompt : prompts) total += static_cast<int64_t>(prompt.size());
  const auto jobs = jobs_of(prompts, 8);
  make_engine(model, {.max_slots = 64, .prefill_tokens = 32})->run(request_of(jobs, {.max_tokens = 8}));
  const auto& packs = model.counts.prefill_tokens;
  EXPECT_EQ(std::accumulate(packs.begin(), packs.end(), int64_t{0}), total);
  EXPECT_LE(*std::max_element(packs.begin(), packs.end()), 32);
  EXPECT_LT(packs.size(), prompts.size());
}

TEST(engine, a_finished_slot_is_refilled_before_the_next_step) {
  FakeModel model;
  const auto prompts = random_prompts(30, 6, 23);
  const auto jobs = jobs_of(prompts, 4);
  make_engine(model, {.max_slots = 8})->run(request_of(jobs, {.max_tokens = 12}, {0, 1, 2}));
  const auto& rows = model.counts.decode_rows;
  // All slots work until no sample is left to admit; from there the number of live ones only falls.
  EXPECT_EQ(*std::max_element(rows.begin(), rows.end()), 8);
  const auto first_short = std::find_if(rows.begin(), rows.end(), [](int64_t n) { return n < 8; });
  EXPECT_TRUE(std::is_sorted(first_short, rows.end(), std::greater<>()));
  EXPECT_GT(first_short - rows.begin(), 20);
}

TEST(engine, greedy_decoding_repeats_and_differs_from_sampling) {
  auto model = testing::task_model();
  const auto prompts = random_prompts(4, 10, 58);
  const auto jobs = jobs_of(prompts, 2);
  const auto greedy = make_engine(*model)->run(request_of(jobs, {.temperature = 0, .max_tokens = 16}));
  for (size_t i = 0; i < greedy.size(); i += 2) EXPECT_EQ(greedy[i].token, greedy[i + 1].token);
  const auto sampled = make_engine(*model)->run(request_of(jobs, {.max_tokens = 16}));
  for (size_t i = 0; i < sampled.size(); i += 2) EXPECT_NE(sampled[i].token, sampled[i + 1].token);
}

TEST(engine, greedy_and_sampled_jobs_of_different_limits_and_stops_share_a_run_and_change_nothing) {
  auto model = testing::task_model();
  const auto prompts = random_prompts(6, 10, 58);
  const std::vector<int32_t> few = {0, 1, 2}, many = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<PromptJob> mixed;
  std::vector<Episode> apart;  // each job in a run of its own, with request-wide settings
  for (uint32_t i = 0; i < prompts.size(); ++i) {
    for (bool greedy : {true, false}) {
      PromptJob job{.prompt = prompts[i], .problem = i, .samples = greedy ? 1 : 3};
      RolloutRequest request = request_of({&job, 1}, {.temperature = greedy ? 0 : 1.3, .max_tokens = 5 + i});
      request.limits.stop_ids = i % 2 ? few : many;
      for (Episode& response : make_engine(*model)->run(request)) apart.push_back(std::move(response));
      job.greedy = greedy;
      job.max_tokens = 5 + i;
      job.stop_ids = i % 2 ? std::span<const int32_t>(few) : std::span<const int32_t>();
      mixed.push_back(job);
    }
  }
  RolloutRequest request = request_of(mixed, {.temperature = 1.3, .max_tokens = 3}, many);
  const auto together = make_engine(*model, {.max_slots = 5})->run(request);
  ASSERT_EQ(together.size(), apart.size());
  for (size_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(together[i].token, apart[i].token);
    EXPECT_EQ(together[i].logprob, apart[i].logprob);
    EXPECT_EQ(together[i].finished, apart[i].finished);
  }
}

TEST(engine, responses_that_are_not_kept_are_still_handed_out_whole) {
  FakeModel model;
  const auto prompts = random_prompts(5, 8, 23);
  const auto jobs = jobs_of(prompts, 3);
  RolloutRequest request = request_of(jobs, {.max_tokens = 10});
  const auto kept = make_engine(model, {.max_slots = 4})->run(request);
  request.sink.keep = false;
  int64_t seen = 0;
  request.sink.on_response = [&](const Episode& r) {
    EXPECT_EQ(r.token, kept[static_cast<size_t>(r.job * 3 + r.sample)].token);
    ++seen;
  };
  EXPECT_TRUE(make_engine(model, {.max_slots = 4})->run(request).empty());
  EXPECT_EQ(seen, 15);
}

TEST(engine, draws_are_keyed_by_seed_step_problem_and_sample) {
  FakeModel model;
  const auto prompts = random_prompts(1, 6, 23);
  const auto run = [&](uint64_t seed, uint32_t step, uint32_t problem, uint32_t sample) {
    const PromptJob job{.prompt = prompts[0], .problem = problem, .samples = 1, .first_sample = sample};
    RolloutRequest request = request_of({&job, 1}, {.max_tokens = 30}, {});
    request.seed = seed;
    request.step = step;
    return make_engine(model)->run(request)[0].token;
  };
  const auto base = run(1, 2, 3, 4);
  EXPECT_EQ(base, run(1, 2, 3, 4));
  EXPECT_NE(base, run(2, 2, 3, 4));
  EXPECT_NE(base, run(1, 3, 3, 4));
  EXPECT_NE(base, run(1, 2, 4, 4));
  EXPECT_NE(base, run(1, 2, 3, 5));
}

TEST(engine, callbacks_tell_every_token_in_order_and_every_response_once) {
  FakeModel model;
  const auto prompts = random_prompts(5, 8, 23);
  const auto jobs = jobs_of(prompts, 3);
  RolloutRequest request = request_of(jobs, {.max_tokens = 10});
  std::map<std::pair<int64_t, uint32_t>, std::vector<int32_t>> streamed;
  std::vector<Episode> ended;
  request.sink.on_token = [&](int64_t job, uint32_t sample, int32_t token) {
    streamed[{job, sample}].push_back(token);
  };
  request.sink.on_response = [&](const Episode& r) { ended.push_back(r); };
  const auto responses = make_engine(model, {.max_slots = 4})->run(request);
  ASSERT_EQ(ended.size(), responses.size());
  for (const Episode& r : responses) EXPECT_EQ((streamed[{r.job, r.sample}]), r.token);
}

TEST(engine, a_large_vocabulary_is_sampled_in_blocks_of_rows_with_the_same_results) {
  FakeModel model(400000);  // 32 rows of logits a block: 34 slots are two blocks
  const auto prompts = random_prompts(2, 5, 23);
  const auto jobs = jobs_of(prompts, 17);
  const SamplingConfig sampling{.max_tokens = 2};
  const auto many = make_engine(model, {.max_slots = 34})->run(request_of(jobs, sampling));
  EXPECT_EQ(*std::max_element(model.counts.decode_rows.begin(), model.counts.decode_rows.end()), 34);
  const auto few = make_engine(model, {.max_slots = 16})->run(request_of(jobs, sampling));
  ASSERT_EQ(many.size(), few.size());
  for (size_t i = 0; i < many.size(); ++i) {
    EXPECT_EQ(many[i].token, few[i].token);
    EXPECT_EQ(many[i].logprob, few[i].logprob);
  }
}

TEST(engine, stopping_early_returns_what_is_done) {
  FakeModel model;
  const auto prompts = random_prompts(20, 8, 23);
  const auto jobs = jobs_of(prompts, 3);
  RolloutRequest request = request_of(jobs, {.max_tokens = 10});
  int64_t ended = 0;
  request.sink.on_response = [&](const Episode&) { ++ended; };
  request.limits.should_stop = [&] { return ended >= 7; };
  const auto some = make_engine(model, {.max_slots = 4})->run(request);
  EXPECT_EQ(static_cast<int64_t>(some.size()), ended);
  EXPECT_GE(ended, 7);
  EXPECT_LT(ended, 60);
}

TEST(engine, one_token_responses_and_no_jobs_at_all_are_fine) {
  FakeModel model;
  const auto prompts = random_prompts(5, 8, 23);
  const auto jobs = jobs_of(prompts, 3);
  const auto ones = make_engine(model, {.max_slots = 2})->run(request_of(jobs, {.max_tokens = 1}));
  ASSERT_EQ(ones.size(), 15u);
  for (const Episode& r : ones) EXPECT_EQ(r.token.size(), 1u);
  EXPECT_TRUE(model.counts.decode_rows.empty());
  EXPECT_TRUE(make_engine(model)->run(request_of({}, {})).empty());
}

// Greedy, so that what follows an insert can be compared with a prompt that ends in it.
TEST(engine, an_insert_is_context_of_what_follows_and_counts_toward_the_limit) {
  FakeModel model;
  const auto prompts = random_prompts(5, 8, 23);
  const auto jobs = jobs_of(prompts, 1);
  RolloutRequest request = request_of(jobs, {.temperature = 0, .max_tokens = 14}, {});
  const auto alone = make_engine(model, {.max_slots = 2})->run(request);
  request.environment = [](const Episode& s) {
    EnvironmentReply reply;
    if (s.token.size() == 3 || s.token.size() == 5) {
      reply = {.kind = EnvironmentReply::Kind::insert, .token = {4, 5, 6}, .text = "456"};
    }
    return reply;
  };
  int64_t tokens = 0;
  request.sink.on_token = [&](int64_t, uint32_t, int32_t) { ++tokens; };
  model.counts = {};
  const auto answered = make_engine(model, {.max_slots = 2})->run(request);
  int64_t prefilled = 0;
  for (const int64_t count : model.counts.prefill_tokens) prefilled += count;
  for (const auto& prompt : prompts) prefilled -= std::ssize(prompt);
  EXPECT_EQ(prefilled, 0) << "the cache goes on: prompts alone are prefilled";
  ASSERT_EQ(answered.size(), 5u);
  EXPECT_EQ(tokens, 5 * 8);
  for (size_t i = 0; i < answered.size(); ++i) {
    const Episode& s = answered[i];
    ASSERT_EQ(s.token.size(), 8u) << "14 with two inserts of three";
    EXPECT_EQ(s.logprob.size(), s.token.size());
    EXPECT_FALSE(s.finished);
    EXPECT_TRUE(std::equal(s.token.begin(), s.token.begin() + 3, alone[i].token.begin()));
    ASSERT_EQ(s.inserts, (std::vector<Insert>{{3, {4, 5, 6}, "456"}, {5, {4, 5, 6}, "456"}}));
    std::vector<int32_t> context = prompts[i];
    context.insert(context.end(), s.token.begin(), s.token.begin() + 3);
    context.insert(context.end(), {4, 5, 6});
    const PromptJob after{.prompt = context};
    const auto expected = make_engine(model)->run(request_of({&after, 1}, {.temperature = 0, .max_tokens = 2}, {}));
    EXPECT_TRUE(std::equal(s.token.begin() + 3, s.token.begin() + 5, expected[0].token.begin()));
  }
}

TEST(engine, an_environment_ends_episodes_and_one_without_room_cuts_them) {
  FakeModel model;
  const auto prompts = random_prompts(4, 8, 23);
  const auto jobs = jobs_of(prompts, 1);
  RolloutRequest request = request_of(jobs, {.max_tokens = 6}, {});
  using Kind = EnvironmentReply::Kind;
  request.environment = [](const Episode& s) {
    EnvironmentReply reply;
    if (s.token.size() != 3) return reply;
    const Kind kinds[] = {Kind::done, Kind::cut, Kind::insert, Kind::insert};
    reply.kind = kinds[s.job];
    if (reply.kind == Kind::insert) reply.token.assign(s.job == 2 ? 2 : 3, 1);
    return reply;
  };
  const auto ended = make_engine(model)->run(request);
  ASSERT_EQ(ended.size(), 4u);
  EXPECT_TRUE(ended[0].finished);
  EXPECT_EQ(ended[0].token.size(), 3u);
  EXPECT_FALSE(ended[1].finished);
  EXPECT_EQ(ended[1].token.size(), 3u);
  EXPECT_EQ(ended[2].inserts.size(), 1u) << "a message with room for one token after it";
  EXPECT_EQ(ended[2].token.size(), 4u);
  EXPECT_TRUE(ended[3].inserts.empty()) << "no room for a token after it";
  EXPECT_EQ(ended[3].token.size(), 3u);
  EXPECT_FALSE(ended[3].finished);
}

TEST(engine, bad_requests_and_bad_weights_are_errors_that_say_what) {
  FakeModel model;
  const auto message = [&](const std::vector<int32_t>& prompt, int64_t max_tokens) -> std::string {
    const PromptJob job{.prompt = prompt};
    try {
      make_engine(model)->run(request_of({&job, 1}, {.max_tokens = max_tokens}));
    } catch (const Error& error) {
      return error.word() + ": " + error.what();
    }
    return "no error";
  };
  EXPECT_TRUE(message({}, 4).starts_with("empty: prompt 1")) << message({}, 4);
  EXPECT_NE(message({1, 23}, 4).find("token id 23 is outside"), std::string::npos);
  EXPECT_NE(message({1}, 256).find("max_position_embeddings"), std::string::npos);
  model.broken = true;
  EXPECT_TRUE(message({1}, 4).starts_with("numeric: logits are not finite: prompt 1")) << message({1}, 4);
}

}  // namespace ucas

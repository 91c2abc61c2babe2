// Bit-for-bit guards on a real tiny model: what a response is depends on its key and the weights alone, and the trainer
// computes the very numbers that the sampler recorded (docs/numerics.md).
#include "rollout/rollouter.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "base/str.h"
#include "rollout/sampling/kv_budget.h"
#include "support/engine/rollout_requests.h"
#include "support/engine/small_models.h"
#include "support/engine/threads.h"
#include "train/signals/logprobs.h"

namespace ucas {

namespace {

using testing::jobs_of;
using testing::random_prompts;
using testing::request_of;
using testing::Threads;

bool same(const Episode& a, const Episode& b) {
  return a.sample == b.sample && a.finished == b.finished && a.token == b.token && a.logprob == b.logprob &&
         a.entropy == b.entropy && a.confidence == b.confidence && a.logit == b.logit;
}

int64_t differing(const std::vector<Episode>& a, const std::vector<Episode>& b) {
  EXPECT_EQ(a.size(), b.size());
  int64_t count = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += !same(a[i], b[i]) || a[i].job != b[i].job;
  return count;
}

// All that the sampler noted of its tokens is what the trainer computes from the packed sequences.
void expect_the_trainers_bits(Model& model, const SamplingConfig& sampling,
                              const std::vector<std::vector<int32_t>>& prompts, int64_t samples, int64_t slots) {
  const auto jobs = jobs_of(prompts, samples);
  const double temperature = sampling.temperature;
  const bool truncates = sampling.truncates();
  const auto responses = make_engine(model, {.max_slots = slots})->run(request_of(jobs, sampling));
  Packed packed;
  std::vector<std::pair<int64_t, int64_t>> where;  // of the positions that predict
  for (const Episode& r : responses) {
    const auto& prompt = prompts[static_cast<size_t>(r.job)];
    packed.append(prompt, r.token);
    const auto count = static_cast<int64_t>(r.token.size());
    where.push_back({packed.begin.back() - count - 1, count});
  }
  const at::NoGradGuard no_grad;
  const at::Tensor hidden = model.hidden(packed);
  float most = 0;
  int64_t above = 0;  // tokens that the truncated distribution gives more than the whole one
  for (size_t i = 0; i < responses.size(); ++i) {
    const Episode& r = responses[i];
    ASSERT_EQ(r.whole_logprob.size(), truncates ? r.token.size() : 0u);
    const std::vector<float>& whole = truncates ? r.whole_logprob : r.logprob;
    const auto stats = model.head().stats(hidden.narrow(0, where[i].first, where[i].second), r.token, temperature);
    for (size_t t = 0; t < r.token.size(); ++t) {
      most = std::max(most, std::fabs(stats.logprob.data_ptr<float>()[t] - whole[t]));
      EXPECT_GE(r.logprob[t], whole[t]);
      above += r.logprob[t] > whole[t];
      most = std::max(most, std::fabs(stats.entropy.data_ptr<float>()[t] - r.entropy[t]));
      most = std::max(most, std::fabs(stats.confidence.data_ptr<float>()[t] - r.confidence[t]));
      most = std::max(most, std::fabs(stats.logit.data_ptr<float>()[t] - r.logit[t]));
    }
  }
  EXPECT_EQ(most, 0) << "temperature " << temperature;
  EXPECT_EQ(above > 0, truncates);
}

void expect_the_trainers_bits(Model& model, const SamplingConfig& sampling) {
  expect_the_trainers_bits(model, sampling, random_prompts(8, 30, 58), 6, 10);
}

}  // namespace

TEST(engine_parity, slots_prefill_budget_and_order_of_jobs_change_nothing) {
  const Threads one_thread(1);
  auto model = testing::task_model();
  const auto prompts = random_prompts(9, 20, 58);
  const auto jobs = jobs_of(prompts, 5);
  const SamplingConfig sampling{.temperature = 0.9, .max_tokens = 24};
  const auto reference = make_engine(*model, {.max_slots = 45})->run(request_of(jobs, sampling));
  for (const EngineConfig& config : {EngineConfig{.max_slots = 1}, EngineConfig{.max_slots = 3, .prefill_tokens = 16},
                                     EngineConfig{.max_slots = 7}, EngineConfig{.max_slots = 0}}) {
    EXPECT_EQ(differing(reference, make_engine(*model, config)->run(request_of(jobs, sampling))), 0)
        << "slots " << config.max_slots;
  }
  std::vector<PromptJob> reversed(jobs.rbegin(), jobs.rend());
  auto other = make_engine(*model, {.max_slots = 4})->run(request_of(reversed, sampling));
  for (Episode& r : other) r.job = static_cast<int64_t>(jobs.size()) - 1 - r.job;
  std::stable_sort(other.begin(), other.end(), [](const Episode& a, const Episode& b) { return a.job < b.job; });
  EXPECT_EQ(differing(reference, other), 0);
}

// Prompts shorter than a tile of keys, whole tiles, and several; more of them than the cache has places for.
TEST(engine_parity, responses_that_share_their_prompts_have_the_bits_of_those_that_have_their_own) {
  Rng rng(5, 5);
  std::vector<std::vector<int32_t>> prompts;
  for (const int64_t length : {33, 5, 16, 100, 15, 48, 64, 17, 1, 96, 40, 32, 80, 31}) {
    auto& prompt = prompts.emplace_back();
    for (int64_t i = 0; i < length; ++i) prompt.push_back(static_cast<int32_t>(rng.below(58)));
  }
  const KvBudget room = kv_budget({.max_slots = 8}, 14, 112, {124, 100, 24}, 1);
  ASSERT_TRUE(room.shares());
  ASSERT_LT(room.prompts, 14);
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    auto model = testing::task_model({.dtype = dtype});
    for (int threads : {1, 2}) {
      const Threads set(threads);
      for (const int64_t slots : {1, 3, 8, 0}) {
        SCOPED_TRACE(str(word_of(dtype), ", threads ", threads, ", slots ", slots));
        expect_the_trainers_bits(*model, {.max_tokens = 24}, prompts, 8, slots);
      }
    }
  }
}

TEST(engine_parity, the_number_of_threads_changes_nothing) {
  const Threads one_thread(1);
  auto model = testing::task_model();
  const auto prompts = random_prompts(6, 20, 58);
  const auto jobs = jobs_of(prompts, 7);
  const auto run = [&](int threads) {
    const Threads set(threads);
    return make_engine(*model, {.max_slots = 16})->run(request_of(jobs, {.max_tokens = 16}));
  };
  EXPECT_EQ(differing(run(1), run(2)), 0);
}

TEST(engine_parity, the_log_prob_of_the_sampler_is_the_trainers_bit_for_bit) {
  const Threads one_thread(1);
  auto model = testing::task_model();
  expect_the_trainers_bits(*model, {.max_tokens = 40});
  expect_the_trainers_bits(*model, {.temperature = 0.7, .max_tokens = 40});
  expect_the_trainers_bits(*model, {.top_p = 0.6, .max_tokens = 40});
  expect_the_trainers_bits(*model, {.temperature = 0.9, .top_p = 0.9, .top_k = 5, .max_tokens = 40});
  expect_the_trainers_bits(*model, {.temperature = 0.9, .min_p = 0.6, .max_tokens = 40});
}

// What is said to a response depends on it alone; some get none, some two, one at their very first token.
EnvironmentReply said_to(const Episode& s) {
  EnvironmentReply reply;
  const uint32_t kind = (static_cast<uint32_t>(s.job) + s.sample) % 3;
  const size_t at = s.token.size();
  if ((kind == 1 && at == 6) || (kind == 2 && (at == 1 || at == 9))) {
    reply.kind = EnvironmentReply::Kind::insert;
    for (int32_t i = 0; i < 5 + static_cast<int32_t>(at); ++i) reply.token.push_back((7 * i + s.token.back()) % 58);
  }
  return reply;
}

Batch batch_of(const std::vector<Episode>& episodes, const std::vector<std::vector<int32_t>>& prompts) {
  Batch batch;
  for (const Episode& s : episodes) {
    if (batch.groups.empty() || batch.groups.back().problem != s.job) {
      batch.groups.push_back({s.job, std::ssize(batch.responses), 0, prompts[static_cast<size_t>(s.job)]});
    }
    ++batch.groups.back().count;
    Response& o = batch.responses.emplace_back();
    o.first = batch.token_count();
    o.length = std::ssize(s.token);
    o.group = std::ssize(batch.groups) - 1;
    o.inserts = s.inserts;
    for (const auto& [from, to] : {std::pair{&s.logprob, &batch.rollout_logprob},
                                   {&s.entropy, &batch.entropy},
                                   {&s.confidence, &batch.confidence},
                                   {&s.logit, &batch.logit}}) {
      to->insert(to->end(), from->begin(), from->end());
    }
    batch.token.insert(batch.token.end(), s.token.begin(), s.token.end());
  }
  return batch;
}

TEST(engine_parity, the_trainer_has_the_samplers_bits_over_inserts) {
  const Threads one_thread(1);
  const auto prompts = random_prompts(6, 40, 58);
  const auto jobs = jobs_of(prompts, 5);
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    auto model = testing::task_model({.dtype = dtype});
    RolloutRequest request = request_of(jobs, {.temperature = 0.8, .max_tokens = 40});
    request.environment = said_to;
    const auto reference = make_engine(*model, {.max_slots = 64})->run(request);
    for (const int64_t slots : {1, 4, 9}) {
      const auto other = make_engine(*model, {.max_slots = slots})->run(request);
      EXPECT_EQ(differing(reference, other), 0) << slots;
      for (size_t i = 0; i < other.size(); ++i) EXPECT_EQ(other[i].inserts, reference[i].inserts);
    }
    const Batch said = batch_of(reference, prompts);
    int64_t inserts = 0;
    for (const Response& o : said.responses) inserts += std::ssize(o.inserts);
    EXPECT_GT(inserts, 15);
    for (const int64_t budget : {1, 100, 4096}) {
      SCOPED_TRACE(str(word_of(dtype), ", budget ", budget));
      Batch computed = said;
      compute_signals(*model, computed, 0.8, budget, 40);
      EXPECT_EQ(computed.old_logprob, said.rollout_logprob);
      EXPECT_EQ(computed.entropy, said.entropy);
      EXPECT_EQ(computed.confidence, said.confidence);
      EXPECT_EQ(computed.logit, said.logit);
    }
    Batch accepted = said;
    EXPECT_GT(accept_sampled(*model, accepted, 0.8, 100, 1), 0);
    // It is the inserts that make it so.
    Batch without = said;
    for (Response& o : without.responses) o.inserts.clear();
    compute_signals(*model, without, 0.8, 100);
    EXPECT_NE(without.old_logprob, said.rollout_logprob);
  }
}

TEST(engine_parity, it_is_so_bit_for_bit_in_bf16_and_with_an_adapter) {
  const Threads one_thread(1);
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    for (int64_t rank : {0, 3, 8}) {
      SCOPED_TRACE(str(word_of(dtype), " rank ", rank));
      ModelOptions options{.dtype = dtype};
      options.lora = {.rank = rank, .modules_to_save = {"norm"}};
      if (rank > 0) options.trained = Trained::adapter;
      auto model = testing::task_model(options);
      expect_the_trainers_bits(*model, {.max_tokens = 30});
      expect_the_trainers_bits(*model, {.temperature = 0.7, .top_p = 0.8, .max_tokens = 30});
    }
  }
}

}  // namespace ucas

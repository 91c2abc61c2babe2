#include "rollout/rollouter.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace ucas {

namespace {

struct Jobs {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<PromptJob> jobs;
};

Jobs make_jobs(const std::vector<std::pair<int64_t, int64_t>>& length_and_samples) {
  Jobs out;
  for (const auto& [length, samples] : length_and_samples) out.prompts.emplace_back(static_cast<size_t>(length), 1);
  for (size_t i = 0; i < out.prompts.size(); ++i) {
    out.jobs.push_back(
        {.prompt = out.prompts[i], .problem = 0, .samples = length_and_samples[i].second, .first_sample = 3});
  }
  return out;
}

}  // namespace

TEST(scheduler, prefills_up_to_the_token_budget_and_a_longer_prompt_alone) {
  const Jobs j = make_jobs({{10, 1}, {10, 1}, {50, 1}, {5, 1}, {5, 1}});
  Scheduler scheduler(j.jobs, 8, 20);
  const auto lengths = [&] {
    std::vector<int64_t> jobs;
    for (const auto& p : scheduler.next_prefill()) jobs.push_back(p.job);
    return jobs;
  };
  EXPECT_EQ(lengths(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(lengths(), (std::vector<int64_t>{2}));
  EXPECT_EQ(lengths(), (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(scheduler.next_prefill().empty());
}

TEST(scheduler, a_prompt_slot_is_kept_until_its_last_sample_is_admitted) {
  const Jobs j = make_jobs({{4, 3}, {4, 1}});
  Scheduler scheduler(j.jobs, 1, 100);
  EXPECT_EQ(scheduler.next_prefill().size(), 1u);
  EXPECT_TRUE(scheduler.next_prefill().empty());
  auto first = scheduler.next_samples(2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].sample, 3u);
  EXPECT_EQ(first[1].sample, 4u);
  EXPECT_TRUE(scheduler.next_prefill().empty());
  EXPECT_EQ(scheduler.next_samples(2).size(), 1u);
  const auto next = scheduler.next_prefill();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].job, 1);
}

TEST(scheduler, jobs_without_samples_are_passed_over) {
  const Jobs j = make_jobs({{4, 0}, {4, 1}, {4, 0}});
  Scheduler scheduler(j.jobs, 4, 100);
  EXPECT_EQ(scheduler.next_prefill().size(), 1u);
  EXPECT_EQ(scheduler.next_samples(9).size(), 1u);
  EXPECT_TRUE(scheduler.next_prefill().empty());
}

TEST(scheduler, every_sample_is_admitted_once_and_only_after_its_prefill) {
  Rng rng(1, 2);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<int64_t, int64_t>> shape;
    for (int64_t i = 0, n = 1 + rng.below(12); i < n; ++i) shape.push_back({1 + rng.below(30), rng.below(6)});
    const Jobs j = make_jobs(shape);
    Scheduler scheduler(j.jobs, 1 + rng.below(5), 1 + rng.below(60));
    std::set<std::pair<int64_t, uint32_t>> seen;
    std::set<int64_t> prefilled;
    size_t expected = 0;
    for (const auto& [length, samples] : shape) expected += static_cast<size_t>(samples);
    while (true) {
      const auto admitted = scheduler.next_samples(1 + rng.below(7));
      for (const auto& a : admitted) {
        EXPECT_TRUE(prefilled.contains(a.job));
        EXPECT_TRUE(seen.insert({a.job, a.sample}).second);
      }
      const auto prompts = scheduler.next_prefill();
      for (const auto& p : prompts) EXPECT_TRUE(prefilled.insert(p.job).second);
      if (admitted.empty() && prompts.empty()) break;
    }
    EXPECT_EQ(seen.size(), expected);
  }
}

}  // namespace ucas

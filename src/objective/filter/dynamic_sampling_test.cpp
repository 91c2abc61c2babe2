#include "objective/filter/dynamic_sampling.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include <algorithm>

namespace ucas {
namespace {

PromptOutcome outcome(std::vector<double> metric, double accuracy = 0.5, int64_t longest = 1) {
  return {std::move(metric), accuracy, longest};
}
PromptOutcome accuracy(double share, int64_t longest = 1) { return {{0, 1}, share, longest}; }

KeepRule dapo_rule(int64_t wanted) {
  KeepRule rule;
  rule.mixed = true;
  rule.wanted = wanted;
  rule.max_gen_batches = 10;
  return rule;
}
KeepRule prime(KeepOrder order, int64_t wanted) {
  KeepRule rule;
  rule.low = 0.2;
  rule.high = 0.8;
  rule.order = order;
  rule.wanted = wanted;
  rule.response_limit = 10;
  return rule;
}
using Numbers = std::vector<int64_t>;

TEST(dynamic_sampling, a_prompt_with_equal_outcomes_teaches_dapo_nothing) {
  EXPECT_FALSE(passes(dapo_rule(1), outcome({1, 1, 1})));
  EXPECT_FALSE(passes(dapo_rule(1), outcome({0.7, 0.7, 0.7})));  // its computed deviation is not exactly 0
  EXPECT_TRUE(passes(dapo_rule(1), outcome({0, 1, 0})));
  EXPECT_TRUE(passes(dapo_rule(1), outcome({0})));  // a group of one
}

TEST(dynamic_sampling, both_ends_of_the_accuracy_interval_pass) {
  KeepRule rule = prime(KeepOrder::refill, 1);
  for (double share : {0.2, 0.5, 0.8}) EXPECT_TRUE(passes(rule, accuracy(share))) << share;
  for (double share : {0.0, 0.19, 0.81, 1.0}) EXPECT_FALSE(passes(rule, accuracy(share))) << share;
}

TEST(dynamic_sampling, a_response_one_short_of_the_limit_counts_as_truncated) {
  KeepRule rule = prime(KeepOrder::refill, 1);
  EXPECT_TRUE(passes(rule, accuracy(0.5, 10)));
  rule.untruncated = true;
  EXPECT_TRUE(passes(rule, accuracy(0.5, 8)));
  EXPECT_FALSE(passes(rule, accuracy(0.5, 9)));
}

TEST(dynamic_sampling, refilling_goes_on_until_enough_passed_and_discards_the_surplus) {
  DynamicSampling sampling(dapo_rule(3));
  std::vector<PromptOutcome> first = {outcome({1, 1}), outcome({1, 0}), outcome({0, 0})};
  std::vector<PromptOutcome> second = {outcome({1, 0}), outcome({0, 1}), outcome({0, 1})};
  EXPECT_EQ(sampling.add(first), SamplingAction::more);
  EXPECT_EQ(sampling.add(second), SamplingAction::train);
  EXPECT_EQ(sampling.gen_batches(), 2);
  EXPECT_EQ(sampling.kept(), (Numbers{1, 3, 4, 5}));
  EXPECT_EQ(sampling.trained(), (Numbers{1, 3, 4}));
  EXPECT_TRUE(sampling.may_train(4));
  EXPECT_FALSE(sampling.may_train(5));
  EXPECT_FALSE(sampling.may_train(2));
}

TEST(dynamic_sampling, the_last_generation_batch_trains_on_what_there_is_or_aborts) {
  KeepRule rule = dapo_rule(3);
  rule.max_gen_batches = 1;
  std::vector<PromptOutcome> batch = {outcome({1, 0}), outcome({0, 0})};
  DynamicSampling lenient(rule);
  EXPECT_EQ(lenient.add(batch), SamplingAction::train);
  EXPECT_EQ(lenient.trained(), (Numbers{0}));
  rule.train_short = false;
  EXPECT_EQ(DynamicSampling(rule).add(batch), SamplingAction::abort);
  rule.max_gen_batches = 0;
  DynamicSampling patient(rule);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(patient.add(std::span(batch).last(1)), SamplingAction::more);
}

TEST(dynamic_sampling, preferring_puts_passing_prompts_first_and_fills_up_with_failing_ones) {
  DynamicSampling sampling(prime(KeepOrder::prefer, 3));
  std::vector<PromptOutcome> batch = {accuracy(0), accuracy(1), accuracy(0.5), accuracy(0.9), accuracy(0.2)};
  EXPECT_EQ(sampling.add(batch), SamplingAction::train);
  EXPECT_EQ(sampling.trained(), (Numbers{2, 4, 0}));
  EXPECT_EQ(sampling.kept(), (Numbers{2, 4}));
}

TEST(dynamic_sampling, the_first_of_the_kept_are_trained_on) {
  EXPECT_TRUE(rc::check("trained = the first `wanted` of kept under refill, in order of arrival", [] {
    KeepRule rule = dapo_rule(*rc::gen::inRange<int64_t>(1, 6));
    rule.train_short = *rc::gen::arbitrary<bool>();
    DynamicSampling sampling(rule);
    SamplingAction action = SamplingAction::more;
    while (action == SamplingAction::more) {
      std::vector<PromptOutcome> batch;
      for (int p = *rc::gen::inRange(0, 5); p > 0; --p) batch.push_back(outcome({0.0, *rc::gen::inRange(0, 2) * 1.0}));
      action = sampling.add(batch);
    }
    Numbers kept = sampling.kept(), trained = sampling.trained();
    RC_ASSERT(trained.size() <= kept.size() && std::equal(trained.begin(), trained.end(), kept.begin()));
    RC_ASSERT(trained.size() == kept.size() || static_cast<int64_t>(trained.size()) == rule.wanted);
    RC_ASSERT(std::is_sorted(kept.begin(), kept.end()));
    for (int64_t number = 0; number < sampling.arrived(); ++number) {
      RC_ASSERT(sampling.may_train(number) == (std::ranges::find(trained, number) != trained.end()));
    }
    RC_ASSERT((action == SamplingAction::abort) ==
              (!rule.train_short && static_cast<int64_t>(sampling.kept().size()) < rule.wanted));
  }));
}

TEST(dynamic_sampling, the_overlong_penalty_grows_over_the_buffer) {
  EXPECT_EQ(overlong_penalty(10, 20, 8, 1.0), 0.0);
  EXPECT_DOUBLE_EQ(overlong_penalty(16, 20, 8, 1.0), -0.5);
  EXPECT_DOUBLE_EQ(overlong_penalty(20, 20, 8, 0.5), -0.5);
  EXPECT_EQ(overlong_penalty(20, 20, 0, 1.0), 0.0);
}

TEST(dynamic_sampling, the_rule_says_what_it_asks_for) {
  KeepRule rule = prime(KeepOrder::prefer, 1);
  rule.untruncated = true;
  EXPECT_TRUE(rule.filters());
  EXPECT_EQ(rule.words(), "an accuracy in [0.2, 0.8] and no response of 9 tokens or more");
  EXPECT_FALSE(KeepRule{}.filters());
}

}  // namespace
}  // namespace ucas

#include "objective/advantage/group_advantage.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "support/shaping.h"

namespace ucas {
namespace {

std::vector<Response> group_of(const std::vector<float>& rewards) {
  std::vector<Response> responses(rewards.size());
  for (size_t i = 0; i < rewards.size(); ++i) responses[i].reward = rewards[i];
  return responses;
}

TEST(group_advantage, is_the_z_score_of_the_rewards) {
  auto A = group_advantage(group_of({1, 0, 0, 1, 1}), {});  // mean 0.6, std sqrt(0.3)
  EXPECT_NEAR(A[0], 0.4 / (std::sqrt(0.3) + 1e-6), 1e-12);
  EXPECT_NEAR(A[1], -0.6 / (std::sqrt(0.3) + 1e-6), 1e-12);
}

TEST(group_advantage, is_exactly_zero_where_all_rewards_are_equal) {
  for (float reward : {0.7f, 0.9f, -0.3f, 0.1f, 1.0f, 0.0f}) {
    for (size_t count : {2u, 3u, 7u, 16u, 64u}) {
      for (double a : group_advantage(group_of(std::vector<float>(count, reward)), {})) EXPECT_EQ(a, 0.0);
    }
  }
}

TEST(group_advantage, of_a_group_of_one_is_its_reward_or_zero) {
  EXPECT_NEAR(group_advantage(group_of({0.7f}), {})[0], 0.7 / (1 + 1e-6), 1e-7);
  GroupAdvantageConfig trl;
  trl.group_of_one = GroupOfOne::zero;
  EXPECT_EQ(group_advantage(group_of({0.7f}), trl)[0], 0.0);
}

TEST(group_advantage, sums_to_zero_and_follows_its_rows_bit_for_bit) {
  EXPECT_TRUE(rc::check("permuting the responses permutes the advantages", [](const std::vector<int8_t>& draws) {
    std::vector<float> rewards;
    for (int8_t d : draws) rewards.push_back(static_cast<float>(d) / 7);
    std::vector<size_t> order(rewards.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<float> shuffled;
    for (size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[*rc::gen::inRange<size_t>(i, order.size())]);
    for (size_t i : order) shuffled.push_back(rewards[i]);
    auto A = group_advantage(group_of(rewards), {}), A_shuffled = group_advantage(group_of(shuffled), {});
    double sum = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      RC_ASSERT(A_shuffled[i] == A[order[i]]);
      sum += A[i];
    }
    if (A.size() > 1) RC_ASSERT(std::fabs(sum) < 1e-9);
  }));
}

TEST(centered_rewards, are_the_rewards_less_their_mean_and_exactly_zero_where_all_are_equal) {
  EXPECT_EQ(centered_rewards(group_of({1, 0, 0, 1}), GroupOfOne::reward), (std::vector<double>{0.5, -0.5, -0.5, 0.5}));
  EXPECT_EQ(centered_rewards(group_of({0.7f, 0.7f, 0.7f}), GroupOfOne::reward), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(centered_rewards(group_of({0.75f}), GroupOfOne::reward), std::vector<double>{0.75});
  EXPECT_EQ(centered_rewards(group_of({0.75f}), GroupOfOne::zero), std::vector<double>{0});
}

TEST(zscore, of_equal_values_is_exactly_zero_even_where_their_mean_is_inexact) {
  for (double eps : {0.0, 1e-6}) {  // 0.1 + 0.1 + 0.1 is not 0.3
    EXPECT_EQ(zscore(std::vector<double>{0.1, 0.1, 0.1}, {}, eps, 1), (std::vector<double>{0, 0, 0}));
  }
}

TEST(zscore, leaves_out_what_is_not_counted) {
  std::vector<double> x = {3, 100, 5};
  auto z = zscore(x, {true, false, true}, 0, 1);
  EXPECT_NEAR(z[0], -std::sqrt(0.5), 1e-12);
  EXPECT_EQ(z[1], 0.0);
  EXPECT_NEAR(z[2], std::sqrt(0.5), 1e-12);
  EXPECT_EQ(zscore(x, {false, true, false}, 0, 1), (std::vector<double>{0, 0, 0}));
}

TEST(min_max, spans_zero_to_one_and_is_zero_without_a_range) {
  EXPECT_EQ(min_max(std::vector<float>{4, 4, 4}, 1e-6), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(min_max(std::vector<float>{}, 1e-6), std::vector<double>());
  auto scaled = min_max(std::vector<float>{2, 6, 4}, 0);
  EXPECT_EQ(scaled, (std::vector<double>{0, 1, 0.5}));
}

TEST(min_max, can_put_values_without_a_range_in_the_middle) {
  EXPECT_EQ(min_max(std::vector<float>{4, 4}, 1e-6, EqualValues::half), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(min_max(std::vector<float>{100, 100.0005f}, 1e-6, EqualValues::half), (std::vector<double>{0.5, 0.5}));
  EXPECT_NEAR(min_max(std::vector<float>{100, 100.0005f}, 1e-6)[1], 1, 0.01);
  EXPECT_NEAR(min_max(std::vector<float>{100, 100.01f}, 1e-6, EqualValues::half)[1], 1, 0.01);
}

TEST(baselines, of_equal_rewards_are_worth_exactly_nothing) {
  for (const char* method : {"grpo", "drgrpo", "dapo", "rloo", "reinforce_pp", "reinforce_pp_baseline"}) {
    for (float reward : {0.7f, 0.9f, -0.3f}) {
      Batch batch = testing::group_of({reward, reward, reward}, {2, 0, 3});
      for (float a : testing::compute_advantages(batch, method).advantage) EXPECT_EQ(a, 0.0f) << method;
    }
  }
}

TEST(baselines, an_empty_response_counts_in_the_mean_of_its_group) {
  Batch batch = testing::group_of({1, 0, 0, 0}, {1, 0, 2, 0});
  EXPECT_EQ(testing::per_response(batch, testing::compute_advantages(batch, "drgrpo")),
            (std::vector<float>{0.75, -0.25}));
  EXPECT_NEAR(testing::compute_advantages(batch, "rloo").advantage[0], 1, 1e-7);
}

}  // namespace
}  // namespace ucas

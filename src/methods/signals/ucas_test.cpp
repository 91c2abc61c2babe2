// What UCAS promises, in words; its numbers are in algorithm_cases_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/shaping.h"

namespace ucas {
namespace {

using testing::Advantages;
using testing::make_batch;
using testing::number;
using testing::Row;

Advantages ucas_of(const Batch& batch, const std::vector<Setting>& settings = {}, const char* name = "ucas") {
  return testing::compute_advantages(batch, name, "", settings);
}

Row row(int64_t group, float reward, float confidence, std::vector<float> logit) {
  return {group, reward, std::vector<float>(logit.size(), confidence), logit};
}

// Two right and two wrong answers, one of each confident (20) and one hesitant (14).
Batch four_responses() {
  return make_batch(
      {row(0, 1, 20, {20, 24}), row(0, 1, 14, {20, 24}), row(0, 0, 20, {20, 24}), row(0, 0, 14, {20, 24})});
}

TEST(ucas_method, a_confident_wrong_answer_is_pushed_down_harder) {
  Advantages s = ucas_of(four_responses());
  EXPECT_LT(s.advantage[4], s.advantage[6]);
  EXPECT_GT(s.rows["W"][2], 1);
  EXPECT_LT(s.rows["W"][3], 1);
}

TEST(ucas_method, a_hesitant_right_answer_is_rewarded_more) {
  Advantages s = ucas_of(four_responses());
  EXPECT_GT(s.advantage[2], s.advantage[0]);
}

TEST(ucas_method, the_token_of_the_largest_logit_is_lowered_by_beta_and_that_of_the_smallest_not_at_all) {
  Advantages s = ucas_of(four_responses(), {number("beta", 0.125)});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(s.advantage[2 * i], s.rows["A_mod"][i]);
    EXPECT_NEAR(s.advantage[2 * i + 1], s.rows["A_mod"][i] - 0.125, 1e-6);
  }
}

TEST(ucas_method, a_right_answer_never_falls_below_zero) {
  Advantages s = ucas_of(four_responses(), {number("beta", 5)});
  EXPECT_EQ(s.advantage[1], 0.0f);
  EXPECT_EQ(s.advantage[3], 0.0f);
  EXPECT_GT(s.advantage[0], 0.0f);
  EXPECT_LT(s.advantage[5], -5.0f);
  EXPECT_DOUBLE_EQ(s.metrics["ucas/clamped_share"], 0.5);
}

TEST(ucas_method, beta_zero_leaves_one_advantage_per_response) {
  Advantages s = ucas_of(four_responses(), {number("beta", 0)});
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(s.advantage[2 * i], s.advantage[2 * i + 1]);
  EXPECT_NE(s.advantage[0], s.advantage[2]);
  EXPECT_DOUBLE_EQ(s.metrics["ucas/clamped_share"], 0);
}

TEST(ucas_method, alpha_zero_weighs_all_responses_alike) {
  Advantages s = ucas_of(four_responses(), {number("alpha", 0)});
  for (float W : s.rows["W"]) EXPECT_EQ(W, 1.0f);
  EXPECT_EQ(s.advantage[0], s.advantage[2]);
  EXPECT_LT(s.advantage[1], s.advantage[0]);
}

TEST(ucas_method, without_both_stages_it_is_dapo) {
  Batch batch = four_responses();
  Advantages off = ucas_of(batch, {number("alpha", 0), number("beta", 0)});
  EXPECT_EQ(off.advantage, ucas_of(batch, {}, "dapo").advantage);
  EXPECT_EQ(off.advantage, ucas_of(batch, {}, "grpo").advantage);
  EXPECT_NEAR(off.metrics["ucas/net_advantage/mean"], 0, 1e-7);
  EXPECT_NEAR(off.metrics["ucas/net_advantage/abs_mean"], 0, 1e-7);
  EXPECT_EQ(off.metrics["ucas/weight/std"], 0);
}

TEST(ucas_method, alpha_sets_both_signs_and_each_sign_can_be_set_alone) {
  Batch batch = four_responses();
  Advantages both = ucas_of(batch, {number("alpha", 0.5)});
  EXPECT_EQ(both.advantage, ucas_of(batch, {number("alpha_pos", 0.5), number("alpha_neg", 0.5)}).advantage);
  Advantages one = ucas_of(batch, {number("alpha", 0.5), number("alpha_neg", 0)});
  EXPECT_EQ(one.rows["W"][0], both.rows["W"][0]);
  EXPECT_EQ(one.rows["W"][2], 1.0f);
}

TEST(ucas_method, a_group_of_equal_rewards_is_left_alone) {
  Advantages s = ucas_of(make_batch({row(0, 0.7f, 20, {1, 2}), row(0, 0.7f, 10, {3, 4}), row(0, 0.7f, 15, {5, 9})}));
  for (float a : s.advantage) EXPECT_EQ(a, 0.0f);
  EXPECT_EQ(s.metrics["ucas/weight/mean"], 1.0);
}

TEST(ucas_method, an_empty_response_counts_in_the_rewards_and_not_in_the_confidence) {
  Batch with = make_batch({row(0, 1, 20, {20, 24}), row(0, 0, 0, {}), row(0, 0, 14, {20, 24})});
  Advantages s = ucas_of(with);
  double third = 1.0 / 3, std = std::sqrt(third);
  EXPECT_NEAR(s.rows["A"][0], 2 * third / std, 1e-5);
  EXPECT_EQ(s.rows["C_hat"][1], 0.0f);
  EXPECT_NEAR(s.rows["C_hat"][0], std::sqrt(0.5), 1e-5);  // of two values, not of three
  EXPECT_NEAR(s.rows["C_hat"][2], -std::sqrt(0.5), 1e-5);
}

TEST(ucas_method, metrics_are_those_of_the_rows) {
  Advantages s = ucas_of(four_responses());
  double low = 1e9, high = 0, sum = 0, net = 0;
  for (float W : s.rows["W"]) {
    low = std::min<double>(low, W);
    high = std::max<double>(high, W);
    sum += W / 4;
  }
  for (float a : s.advantage) net += a / 8;
  EXPECT_DOUBLE_EQ(s.metrics["ucas/weight/min"], low);
  EXPECT_DOUBLE_EQ(s.metrics["ucas/weight/max"], high);
  EXPECT_NEAR(s.metrics["ucas/weight/mean"], sum, 1e-12);
  EXPECT_NEAR(s.metrics["ucas/net_advantage/mean"], net, 1e-7);
  EXPECT_LT(net, -0.005);  // shaping pushes the group down as a whole
  EXPECT_DOUBLE_EQ(s.metrics["ucas/confidence/mean"], 17);
}

TEST(ucas_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(testing::order_never_matters("ucas"));
  EXPECT_TRUE(testing::order_never_matters("ucas", "released"));
  EXPECT_TRUE(testing::order_never_matters("ucas", "", {{"norm_by_std", false, "norm_by_std", false}}));
}

}  // namespace
}  // namespace ucas

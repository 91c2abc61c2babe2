#include <gtest/gtest.h>

#include <cmath>

#include "support/shaping.h"

namespace ucas {
namespace {

using testing::group_of;
using testing::make_batch;
using testing::shape;
using testing::Shaped;

TEST(reinforce_pp_method, the_baseline_is_the_mean_over_the_tokens_of_the_whole_batch) {
  Batch batch = group_of({1, 0}, {1, 3});  // returns 1 0 0 0: mean 0.25, variance 0.25
  Shaped s = shape(batch, "reinforce_pp");
  EXPECT_EQ(s.rows["R"], (std::vector<float>{1, 0, 0, 0}));
  EXPECT_NEAR(s.advantage[0], 1.5, 1e-6);
  for (size_t t = 1; t < 4; ++t) EXPECT_NEAR(s.advantage[t], -0.5, 1e-6);
}

TEST(reinforce_pp_method, gamma_discounts_what_is_far_away) {
  Batch batch = group_of({1, 0}, {3, 1});
  Shaped s = shape(batch, "reinforce_pp", "", {{"gamma", 0.5, "gamma", false}});
  EXPECT_EQ(s.rows["R"], (std::vector<float>{0.25, 0.5, 1, 0}));
}

TEST(reinforce_pp_method, the_kl_penalty_is_paid_token_by_token) {
  Batch batch = group_of({1, 0}, {3, 1});
  batch.reward_kl = {0.25f, 0, -0.5f, 0.125f};
  batch.responses[0].kl_penalty = -0.25f;  // and the reward is what is left, as the trainer sets it
  batch.responses[0].reward = 1.25f;
  batch.responses[1].kl_penalty = 0.125f;
  batch.responses[1].reward = -0.125f;
  EXPECT_EQ(shape(batch, "reinforce_pp").rows["R"], (std::vector<float>{1.25, 1.5, 1.5, -0.125}));
}

TEST(reinforce_pp_method, is_content_with_one_response_per_prompt) {
  Batch batch = make_batch({{0, 1, {1}, {1}}, {1, 0, {1}, {1}}});
  Shaped s = shape(batch, "reinforce_pp");
  EXPECT_NEAR(s.advantage[0], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(s.advantage[1], -std::sqrt(0.5), 1e-6);
}

TEST(reinforce_pp_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(testing::order_never_matters("reinforce_pp"));
}

}  // namespace
}  // namespace ucas

#include <gtest/gtest.h>

#include <cmath>

#include "support/shaping.h"

namespace ucas {
namespace {

using testing::group_of;
using testing::make_batch;
using testing::shape;
using testing::Shaped;

TEST(reinforce_pp_baseline_method, a_prompt_answered_always_alike_stands_at_the_mean_of_the_batch) {
  Batch batch = make_batch({{0, 1, {1}, {1}}, {0, 0, {1}, {1}}, {1, 1, {1}, {1}}, {1, 1, {1}, {1}}});
  Shaped s = shape(batch, "reinforce_pp_baseline");
  EXPECT_EQ(s.rows["A"], (std::vector<float>{0.5, -0.5, 0, 0}));
  EXPECT_NEAR(s.advantage[0], 0.5 / std::sqrt(0.5 / 3), 1e-6);
  EXPECT_EQ(s.advantage[2], 0.0f);
  EXPECT_EQ(s.advantage[3], 0.0f);
}

TEST(reinforce_pp_baseline_method, a_long_response_counts_with_each_token) {
  Batch batch = group_of({1, 0}, {1, 3});  // centred 0.5 -0.5 -0.5 -0.5: mean -0.25, variance 0.25
  Shaped s = shape(batch, "reinforce_pp_baseline");
  EXPECT_NEAR(s.advantage[0], 1.5, 1e-6);
  EXPECT_NEAR(s.advantage[1], -0.5, 1e-6);
}

TEST(reinforce_pp_baseline_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(testing::order_never_matters("reinforce_pp_baseline"));
}

}  // namespace
}  // namespace ucas

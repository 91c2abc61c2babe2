#include <gtest/gtest.h>

#include "support/shaping.h"

namespace ucas {
namespace {

using testing::group_of;
using testing::per_response;
using testing::shape;

Setting text(const char* key, const char* value) { return {key, std::string(value), key, false}; }

TEST(rloo_method, the_baseline_is_the_mean_of_the_others) {
  Batch batch = group_of({1, 0, 0, 0.5f}, {1, 2, 3, 1});
  std::vector<float> A = per_response(batch, shape(batch, "rloo"));
  EXPECT_NEAR(A[0], 1 - 0.5 / 3, 1e-7);
  EXPECT_NEAR(A[1], 0 - 1.5 / 3, 1e-7);
  EXPECT_NEAR(A[3], 0.5 - 1.0 / 3, 1e-7);
}

TEST(rloo_method, alone_a_response_is_worth_its_reward_or_nothing) {
  Batch alone = group_of({0.5f}, {2});
  EXPECT_EQ(shape(alone, "rloo").advantage[1], 0.5f);
  EXPECT_EQ(shape(alone, "rloo", "", {text("group_of_one", "zero")}).advantage[1], 0.0f);
}

TEST(rloo_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(testing::order_never_matters("rloo"));
}

}  // namespace
}  // namespace ucas

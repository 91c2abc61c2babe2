#include <gtest/gtest.h>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::group_of;
using testing::per_response;
using testing::shape;

ObjectiveConfig objective(const char* preset) {
  auto m = make_method("drgrpo");
  m->use_preset(preset);
  return m->objective_defaults();
}

TEST(drgrpo_method, the_spread_of_a_group_is_not_divided_out) {
  Batch batch = group_of({1, 0, 0, 0}, {1, 2, 3, 1});
  EXPECT_EQ(per_response(batch, shape(batch, "drgrpo")), (std::vector<float>{0.75, -0.25, -0.25, -0.25}));
}

TEST(drgrpo_method, the_two_forms_differ_in_the_divisor_and_in_a_group_of_one) {
  EXPECT_EQ(objective("oat").aggregation, Aggregation::row_mean_token_sum_norm);
  EXPECT_EQ(objective("verl").aggregation, Aggregation::seq_mean_token_sum_norm);
  for (const char* preset : {"oat", "verl"}) EXPECT_EQ(objective(preset).dual_clip, 0);
  Batch alone = group_of({0.5f}, {2});
  EXPECT_EQ(shape(alone, "drgrpo").advantage[0], 0.0f);
  EXPECT_EQ(shape(alone, "drgrpo", "verl").advantage[0], 0.5f);
}

TEST(drgrpo_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(testing::order_never_matters("drgrpo"));
}

}  // namespace
}  // namespace ucas

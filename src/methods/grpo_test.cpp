#include <gtest/gtest.h>

#include <cmath>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::group_of;
using testing::shape;

ObjectiveConfig objective(const char* preset) {
  auto m = make_method("grpo");
  m->use_preset(preset);
  return m->objective_defaults();
}

TEST(grpo_method, presets_are_those_of_the_released_trainers) {
  EXPECT_EQ(objective("paper").kl_coeff, 0);
  EXPECT_EQ(objective("deepseek").kl_coeff, 0.04);
  EXPECT_EQ(objective("deepseek").kl_estimator, KlEstimator::k3);
  for (const char* token_mean : {"verl", "trl"}) {
    EXPECT_EQ(objective(token_mean).aggregation, Aggregation::token_mean);
  }
  EXPECT_EQ(objective("oat").aggregation, Aggregation::seq_mean_token_mean);
  EXPECT_EQ(objective("verl").dual_clip, 3);
  Batch batch = group_of({1, 0, 0, 1}, {1, 1, 1, 1});
  double std = std::sqrt(1.0 / 3);
  EXPECT_NEAR(shape(batch, "grpo", "verl").advantage[0], 0.5 / (std + 1e-6), 1e-7);
  EXPECT_NEAR(shape(batch, "grpo", "oat").advantage[0], 0.5 / (std + 1e-8), 1e-7);
  EXPECT_NEAR(shape(batch, "grpo", "trl").advantage[0], 0.5 / (std + 1e-4), 1e-7);
  Batch alone = group_of({0.5f}, {2});
  EXPECT_NEAR(shape(alone, "grpo", "verl").advantage[0], 0.5, 1e-6);
  EXPECT_EQ(shape(alone, "grpo", "oat").advantage[0], 0.0f);
  EXPECT_EQ(shape(alone, "grpo", "trl").advantage[0], 0.0f);
}

TEST(grpo_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(testing::order_never_matters("grpo"));
}

}  // namespace
}  // namespace ucas

#include <gtest/gtest.h>

#include <cmath>

#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

TEST(simplerl, is_grpo_with_a_weak_pull_to_the_base_and_an_entropy_bonus) {
  ObjectiveConfig objective = make_method("simplerl")->objective_defaults();
  EXPECT_EQ(objective.aggregation, Aggregation::token_mean);
  EXPECT_EQ(objective.clip_low, 0.2);
  EXPECT_EQ(objective.clip_high, 0.2);
  EXPECT_EQ(objective.dual_clip, 0);
  EXPECT_EQ(objective.kl_estimator, KlEstimator::k3);
  EXPECT_EQ(objective.kl_coeff, 1e-4);
  EXPECT_EQ(objective.entropy_coeff, 1e-3);
  EXPECT_FALSE(objective.keep_mixed_groups);
  auto released = make_method("simplerl");
  released->use_preset("released");
  EXPECT_EQ(released->objective_defaults().kl_coeff, 1e-3);
}

TEST(simplerl, its_advantages_are_those_of_grpo) {
  std::vector<testing::Row> rows;
  for (float reward : {1.0f, 0.0f, 0.0f, 1.0f, 0.0f}) rows.push_back({0, reward, {12, 12}, {1, 2}});
  for (float reward : {0.7f, 0.7f, 0.7f}) rows.push_back({1, reward, {12}, {1}});
  Batch batch = testing::make_batch(rows);
  std::vector<float> A(batch.token.size()), of_grpo(batch.token.size());
  Trace trace;
  make_method("simplerl")->advantages(batch, A, trace);
  make_method("grpo")->advantages(batch, of_grpo, trace);
  EXPECT_EQ(A, of_grpo);
  EXPECT_GT(A[0], 0);
  for (size_t t = 10; t < 13; ++t) EXPECT_EQ(A[t], 0);  // equal rewards: exactly 0
}

TEST(simplerl, a_token_without_advantage_still_feels_reference_and_entropy) {
  auto method = make_method("simplerl");
  ObjectiveConfig objective = method->objective_defaults();
  testing::LossCase mini;
  mini.add({-1.0f, -2.0f}, {-1.0f, -2.0f}, {0, 0}, {1.5f, 0.5f}, {-1.5f, -2.0f});
  auto result = testing::run_objective(*method, objective, mini, 0);
  double d = 0.5, k3 = std::exp(-d) + d - 1;
  EXPECT_NEAR(result.loss, (1e-4 * k3 - 1e-3 * 2.0) / 2, 1e-8);
  EXPECT_NEAR(result.d_logprob[0], 1e-4 * (1 - std::exp(-d)) / 2, 1e-8);
  EXPECT_EQ(result.d_logprob[1], 0);
  for (float e : result.d_entropy) EXPECT_FLOAT_EQ(e, -1e-3f / 2);
}

}  // namespace
}  // namespace ucas

// GPG: its scale, its baseline and its plain gradient.
#include <gtest/gtest.h>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::compute_advantages;

// Two mixed prompts of 2 and 3 responses, one whose 3 all earn the same, one with a single response.
Batch four_prompts() {
  return testing::make_batch({{0, 1, {1, 1}, {1, 2}},
                              {0, 0, {1}, {1}},
                              {1, 1, {1}, {1}},
                              {1, 0, {1}, {1}},
                              {1, 0, {1}, {1}},
                              {2, 1, {1}, {1}},
                              {2, 1, {1}, {1}},
                              {2, 1, {1}, {1}},
                              {3, 1, {1}, {1}}});
}

// B = 9, M = 3 + 1: alpha = 9 / 5.
TEST(gpg_method, what_the_prompts_without_a_gradient_have_taken_the_others_give_back) {
  testing::Advantages s = compute_advantages(four_prompts(), "gpg");
  EXPECT_DOUBLE_EQ(s.metrics.at("gpg/alpha"), 9.0 / 5);
  const std::vector<double> expected = {0.9, 0.9, -0.9, 1.2, -0.6, -0.6, 0, 0, 0, 0};
  ASSERT_EQ(s.advantage.size(), expected.size());
  for (size_t t = 0; t < expected.size(); ++t) EXPECT_NEAR(s.advantage[t], expected[t], 1e-6) << t;
}

// verl: all responses over those of a reward other than 0, 9 / 6, and a lone response keeps its reward.
TEST(gpg_method, verl_s_scale_counts_rewards_instead_of_prompts) {
  testing::Advantages s = compute_advantages(four_prompts(), "gpg", "verl");
  EXPECT_DOUBLE_EQ(s.metrics.at("gpg/alpha"), 1.5);
  EXPECT_NEAR(s.advantage[0], 0.75, 1e-6);
  EXPECT_NEAR(s.advantage[9], 1.5, 1e-6);
}

TEST(gpg_method, a_batch_without_a_mixed_prompt_teaches_nothing) {
  testing::Advantages s = compute_advantages(testing::group_of({1, 1}, {2, 1}), "gpg");
  EXPECT_EQ(s.advantage, (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(s.metrics.at("gpg/alpha"), 1);
}

TEST(gpg_method, its_gradient_is_the_advantage_however_far_the_policy_has_moved) {
  auto method = make_method("gpg");
  testing::LossCase mini;
  mini.add({-1, -30}, {-2, -0.5f}, {0.5f, -2});
  auto result = run_objective(*method, method->objective_defaults(), mini, 0);
  EXPECT_EQ(result.d_logprob, (std::vector<float>{-0.25f, 1}));
  EXPECT_FLOAT_EQ(result.loss, (0.5 - 60) / 2);  // mean of -A lp
  EXPECT_EQ(result.metrics.clipfrac, 0);
}

}  // namespace
}  // namespace ucas

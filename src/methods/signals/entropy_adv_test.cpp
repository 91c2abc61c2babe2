#include <gtest/gtest.h>

#include <cmath>

#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

using testing::LossCase;
using testing::run_objective;

// -A' of each token, on-policy, where the loss is the plain policy gradient.
std::vector<float> computed(const std::vector<float>& A, const std::vector<float>& H, const char* preset = "grpo") {
  auto method = make_method("entropy_adv", preset);
  LossCase mini;
  std::vector<float> lp(A.size(), -1);
  mini.add(lp, lp, A, H);
  std::vector<float> d = run_objective(*method, method->objective_defaults(), mini, 0).d_logprob;
  for (float& x : d) x *= -static_cast<float>(A.size());
  return d;
}

TEST(entropy_adv_method, hesitation_raises_the_advantage_up_to_half_of_it) {
  std::vector<float> got = computed({1, 1, -1, -1}, {0.5f, 9, 0.5f, 9}), want = {1.2f, 1.5f, -0.8f, -0.5f};
  for (size_t t = 0; t < want.size(); ++t) EXPECT_NEAR(got[t], want[t], 1e-6);
}

TEST(entropy_adv_method, an_advantage_of_zero_stays_zero) {
  for (float a : computed({0, 0}, {0.1f, 9})) EXPECT_EQ(a, 0.0f);
}

TEST(entropy_adv_method, no_gradient_flows_through_the_entropy) {
  auto method = make_method("entropy_adv");
  LossCase mini;
  mini.add({-1, -1}, {-1.5f, -0.9f}, {1, -1}, {0.5f, 0.7f});
  for (float e : run_objective(*method, method->objective_defaults(), mini, 0).d_entropy) EXPECT_EQ(e, 0.0f);
}

TEST(entropy_adv_method, the_entropy_is_that_of_the_update_and_the_old_one_is_recorded) {
  auto method = make_method("entropy_adv");
  Batch batch = testing::make_batch({{0, 1, {1, 1}, {1, 1}}, {0, 0, {1}, {1}}});
  batch.entropy = {0.5f, 0, 9};
  std::vector<float> advantage(3);
  Recording recording;
  method->advantages(batch, advantage, recording);
  EXPECT_EQ(advantage[0], advantage[1]);
  ASSERT_EQ(recording.rows.size(), 2u);
  EXPECT_EQ(recording.rows[1].name, "psi");
  EXPECT_NEAR(recording.rows[1].values[0], 0.2, 1e-6);
  EXPECT_EQ(recording.rows[1].values[1], 0.0f);
  EXPECT_NEAR(recording.rows[1].values[2], -advantage[2] / 2, 1e-6);
}

TEST(entropy_adv_method, its_ppo_form_takes_the_critic_off_the_reward) {
  auto method = make_method("entropy_adv", "ppo");
  ASSERT_TRUE(method->needs().critic.has_value());
  EXPECT_FALSE(make_method("entropy_adv")->needs().critic.has_value());
  Batch batch = testing::make_batch({{0, 1, {1, 1}, {1, 1}}, {0, 0, {1}, {1}}});
  batch.signal("value") = {0.5f, 0.75f, 0.25f};  // R - V = 0.5, 0.25, -0.25: mean 1/6, variance 7/48
  std::vector<float> advantage(3), returns(3);
  Recording recording;
  method->advantages(batch, advantage, recording);
  EXPECT_NEAR(advantage[0], (0.5 - 1.0 / 6) / std::sqrt(7.0 / 48), 1e-5);
  EXPECT_NEAR(advantage[2], (-0.25 - 1.0 / 6) / std::sqrt(7.0 / 48), 1e-5);
  method->returns(batch, returns);
  EXPECT_EQ(returns, (std::vector<float>{1, 1, 0}));
  EXPECT_NEAR(computed({1}, {0.5f}, "ppo")[0], 1.05, 1e-6);
}

}  // namespace
}  // namespace ucas

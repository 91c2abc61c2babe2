#include "objective/loss/kl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "objective/advantage/returns.h"
#include "support/algorithm_cases.h"

namespace ucas {
namespace {

// Three responses of 3, 0 and 2 tokens in one group.
Batch small_batch() {
  Batch batch;
  batch.token = {1, 2, 3, 4, 5};
  batch.old_logprob = {-0.5f, -1.0f, -2.0f, -0.25f, -0.75f};
  batch.signal("ref_logprob") = {-1.0f, -1.0f, -1.5f, -0.5f, -0.25f};
  batch.groups.push_back({0, 0, 3, {}});
  for (auto [first, length, reward] : {std::tuple{0, 3, 1.0f}, {3, 0, 0.0f}, {3, 2, 0.5f}}) {
    Response o;
    o.first = first;
    o.length = length;
    o.reward = o.score = reward;
    batch.responses.push_back(o);
  }
  return batch;
}

TEST(kl_reward, every_token_pays_for_its_distance_to_the_reference) {
  Batch batch = small_batch();
  double kl = take_kl_off_reward(batch, KlEstimator::k1, 0.5);
  EXPECT_EQ(batch.reward_kl, (std::vector<float>{0.25f, 0, -0.25f, 0.125f, -0.25f}));
  EXPECT_EQ(batch.responses[0].kl_penalty, 0);
  EXPECT_EQ(batch.responses[2].kl_penalty, -0.125f);
  EXPECT_EQ(batch.responses[2].reward, 0.625f);
  EXPECT_EQ(batch.responses[2].score, 0.5f);
  EXPECT_DOUBLE_EQ(kl, (0.0 + (0.25 - 0.5) / 2) / 2);  // the empty response has no mean
}

TEST(kl_reward, token_rewards_add_up_to_the_reward) {
  for (KlEstimator estimator : {KlEstimator::k1, KlEstimator::abs, KlEstimator::k2, KlEstimator::k3}) {
    Batch batch = small_batch();
    take_kl_off_reward(batch, estimator, 0.1);
    std::vector<double> r = token_rewards(batch);
    EXPECT_NEAR(r[0] + r[1] + r[2], batch.responses[0].reward, 1e-6);
    EXPECT_NEAR(r[3] + r[4], batch.responses[2].reward, 1e-6);
  }
}

TEST(kl_reward, the_order_of_responses_changes_no_bit_of_the_kl) {
  Batch batch;
  for (int i = 0; i < 40; ++i) {
    Response o;
    o.first = i;
    o.length = 1;
    batch.responses.push_back(o);
    batch.token.push_back(i);
    batch.old_logprob.push_back(-0.1f * static_cast<float>(i * i % 17));
    batch.signal("ref_logprob").push_back(-0.3f);
  }
  Batch reversed = batch;
  std::reverse(reversed.responses.begin(), reversed.responses.end());
  EXPECT_EQ(take_kl_off_reward(batch, KlEstimator::k3, 0.1), take_kl_off_reward(reversed, KlEstimator::k3, 0.1));
}

TEST(kl_reward, the_worked_cases_agree) {
  for (const std::string& path : testing::algorithm_case_files()) {
    int passed = 0;
    for (const auto& result : testing::run_algorithm_cases(path)) {
      if (result.method != "kl-in-reward" || result.outcome == testing::CaseOutcome::not_covered) continue;
      EXPECT_EQ(result.outcome, testing::CaseOutcome::passed) << result.id << ": " << result.detail;
      ++passed;
    }
    EXPECT_GE(passed, 1) << path;
  }
}

}  // namespace
}  // namespace ucas

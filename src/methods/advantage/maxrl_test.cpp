// MaxRL: the first N terms of the gradient of ln p.
#include <gtest/gtest.h>

#include <cmath>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::compute_advantages;
using testing::per_response;

Batch prompt(const std::vector<int>& right) {
  Batch batch = testing::group_of(std::vector<float>(right.size(), -1), std::vector<size_t>(right.size(), 1));
  for (size_t i = 0; i < right.size(); ++i) {
    batch.responses[i].verdict.decide(right[i] != 0 ? VerdictKind::equal : VerdictKind::unequal, "test");
  }
  return batch;
}

// One of four right: m = 1/4, so 3 and -1.
TEST(maxrl_method, a_group_worked_by_hand) {
  Batch batch = prompt({0, 1, 0, 0});
  EXPECT_EQ(per_response(batch, compute_advantages(batch, "maxrl")), (std::vector<float>{-1, 3, -1, -1}));
  EXPECT_EQ(compute_advantages(batch, "maxrl").metrics.at("maxrl/solved_share"), 1);
  EXPECT_NEAR(compute_advantages(batch, "maxrl", "released").advantage[1], 0.75 / 0.250001, 1e-6);
}

TEST(maxrl_method, where_none_or_all_are_right_nothing_is_learnt) {
  EXPECT_EQ(compute_advantages(prompt({0, 0, 0}), "maxrl").advantage, (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(compute_advantages(prompt({1, 1, 1}), "maxrl").advantage, (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(compute_advantages(prompt({0, 0, 0}), "maxrl").metrics.at("maxrl/solved_share"), 0);
}

// A response is right with the chance p; d ln pi / dp of it is 1 / p if right, -1 / (1 - p) if not. Over all outcomes
// of N responses the mean of sum_i A_i s_i / N is sum_{k < N} (1 - p)^(k - 1), the first terms of d ln p / dp = 1 / p.
// (The N-th is lost with the baseline of the outcomes without a right one.)
TEST(maxrl_method, over_all_outcomes_it_is_the_truncated_gradient_of_ln_p) {
  const double p = 0.3;
  const int N = 6;
  double gradient = 0;
  for (unsigned outcome = 0; outcome < 1u << N; ++outcome) {
    std::vector<int> right;
    double chance = 1;
    for (int i = 0; i < N; ++i) {
      right.push_back(static_cast<int>(outcome >> i & 1));
      chance *= right.back() != 0 ? p : 1 - p;
    }
    std::vector<float> A = compute_advantages(prompt(right), "maxrl").advantage;
    for (int i = 0; i < N; ++i) {
      const double score = right[static_cast<size_t>(i)] != 0 ? 1 / p : -1 / (1 - p);
      gradient += chance * A[static_cast<size_t>(i)] * score / N;
    }
  }
  double terms = 0;
  for (int k = 1; k < N; ++k) terms += std::pow(1 - p, k - 1);
  EXPECT_NEAR(gradient, terms, 1e-6);
}

TEST(maxrl_method, what_is_right_is_the_verdict_and_not_the_reward) {
  Batch batch = prompt({0, 1, 0, 1});
  std::vector<float> before = compute_advantages(batch, "maxrl").advantage;
  for (Response& o : batch.responses) o.reward = 0.1f * static_cast<float>(o.sample);
  EXPECT_EQ(compute_advantages(batch, "maxrl").advantage, before);
}

}  // namespace
}  // namespace ucas

// Pass@k training against what it averages over: all sets of k responses, one by one.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::Advantages;
using testing::compute_advantages;
using testing::number;
using testing::per_response;
using testing::text;

// Each response to a prompt has one token and, if right, the reward 1. The rewards are not what counts: `verdicts` are.
Batch prompt_of(const std::vector<bool>& right) {
  Batch batch = testing::group_of(std::vector<float>(right.begin(), right.end()), std::vector<size_t>(right.size(), 1));
  for (size_t i = 0; i < right.size(); ++i) {
    batch.responses[i].verdict.decide(right[i] ? VerdictKind::equal : VerdictKind::unequal, "test");
  }
  return batch;
}

std::vector<bool> first_right(int right, int all) {
  std::vector<bool> is(static_cast<size_t>(all), false);
  std::fill(is.begin(), is.begin() + right, true);
  return is;
}

Setting k_of(int64_t k) { return {"k", k, "test", false}; }

// Every set of k responses as a mask: its reward, z-scored among all sets, given to its members and averaged there.
std::vector<double> by_counting(const std::vector<bool>& right, int k) {
  const unsigned all = 1u << right.size();
  std::vector<std::pair<unsigned, double>> sets;
  double mean = 0, square = 0;
  for (unsigned set = 0; set < all; ++set) {
    if (std::popcount(set) != k) continue;
    double reward = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      if ((set >> i & 1) != 0 && right[i]) reward = 1;
    }
    sets.emplace_back(set, reward);
    mean += reward;
  }
  mean /= static_cast<double>(sets.size());
  for (auto [set, reward] : sets) square += (reward - mean) * (reward - mean);
  const double deviation = std::sqrt(square / static_cast<double>(sets.size()));
  std::vector<double> A(right.size(), 0.0);
  if (deviation == 0) return A;
  for (size_t i = 0; i < right.size(); ++i) {
    double sum = 0, count = 0;
    for (auto [set, reward] : sets) {
      if ((set >> i & 1) == 0) continue;
      sum += (reward - mean) / deviation;
      count += 1;
    }
    A[i] = sum / count;
  }
  return A;
}

TEST(passk_method, an_advantage_is_the_mean_over_all_sets_of_k_that_hold_the_response) {
  for (int n = 2; n <= 9; ++n) {
    for (int k = 1; k < n; ++k) {
      for (int right = 0; right <= n; ++right) {
        std::vector<bool> is = first_right(right, n);
        std::vector<float> A = compute_advantages(prompt_of(is), "passk", "", {k_of(k)}).advantage;
        std::vector<double> counted = by_counting(is, k);
        for (size_t i = 0; i < is.size(); ++i) {
          ASSERT_NEAR(A[i], counted[i], 1e-6) << right << " of " << n << " right, k = " << k << ", response " << i;
        }
      }
    }
  }
}

// N = 8, N_neg = 6, k = 4: R = 1 - 15/70 = 11/14; a wrong one has C(5,3) / C(7,3) = 10/35 next to it.
TEST(passk_method, a_group_worked_by_hand) {
  Advantages s = compute_advantages(prompt_of(first_right(2, 8)), "passk");
  const double sigma = std::sqrt(3.0 / 14 * 11.0 / 14);
  EXPECT_NEAR(s.advantage[0], 3.0 / 14 / sigma, 1e-6);
  EXPECT_NEAR(s.advantage[7], (3.0 / 14 - 2.0 / 7) / sigma, 1e-6);
  EXPECT_NEAR(s.metrics.at("passk/reward_mean"), 11.0 / 14, 1e-12);
  EXPECT_EQ(s.metrics.at("passk/silent_share"), 0);
}

TEST(passk_method, with_k_of_1_it_is_grpo_with_the_deviation_over_the_group) {
  for (int right = 1; right < 6; ++right) {
    Batch batch = prompt_of(first_right(right, 6));
    std::vector<float> grpo =
        compute_advantages(batch, "grpo", "", {{"ddof", int64_t{0}, "test", false}, number("eps", 0)}).advantage;
    std::vector<float> one = compute_advantages(batch, "passk", "", {k_of(1)}).advantage;
    for (size_t i = 0; i < grpo.size(); ++i) EXPECT_NEAR(one[i], grpo[i], 1e-6) << right;
  }
}

TEST(passk_method, an_easy_prompt_teaches_nothing_and_is_counted) {
  Batch batch = prompt_of(first_right(5, 8));  // 3 wrong: no set of 4 without a right one
  Advantages s = compute_advantages(batch, "passk");
  for (float a : s.advantage) EXPECT_EQ(a, 0.0f);
  EXPECT_EQ(s.metrics.at("passk/silent_share"), 1);
  EXPECT_GT(compute_advantages(batch, "passk", "", {k_of(3)}).advantage[0], 0.0f);
}

TEST(passk_method, the_larger_k_the_more_of_the_push_goes_to_rare_right_answers) {
  Batch rare = prompt_of(first_right(1, 16)), common = prompt_of(first_right(8, 16));
  auto weight = [](const Batch& batch, int64_t k) {
    return compute_advantages(batch, "passk", "", {k_of(k)}).advantage[0];
  };
  EXPECT_GT(weight(rare, 8) / weight(common, 8), weight(rare, 4) / weight(common, 4));
  EXPECT_GT(weight(rare, 4) / weight(common, 4), weight(rare, 1) / weight(common, 1));
}

TEST(passk_method, what_is_right_is_the_verdict_and_not_the_shaped_reward) {
  Batch batch = prompt_of(first_right(2, 8));
  std::vector<float> before = compute_advantages(batch, "passk").advantage;
  for (Response& o : batch.responses) o.reward -= 0.4f + 0.01f * static_cast<float>(o.sample);
  EXPECT_EQ(compute_advantages(batch, "passk").advantage, before);
  batch.responses[3].verdict.kind = VerdictKind::equal;
  EXPECT_NE(compute_advantages(batch, "passk").advantage, before);
}

TEST(passk_method, thousands_of_responses_neither_overflow_nor_lose_their_sum) {
  Batch batch = prompt_of(first_right(3, 4096));
  std::vector<float> A = compute_advantages(batch, "passk", "", {k_of(1024)}).advantage;
  double sum = 0, size = 0;
  for (float a : A) {
    ASSERT_TRUE(std::isfinite(a));
    sum += a;
    size += std::fabs(a);
  }
  EXPECT_GT(size, 1);
  EXPECT_LT(std::fabs(sum), 1e-4 * size);  // each set's z-score is shared by its k: they add up to 0
}

TEST(passk_method, has_the_loss_of_dapo_and_asks_for_more_than_k_responses) {
  std::unique_ptr<Method> method = make_method("passk");
  EXPECT_EQ(method->needs().responses, 5);
  ObjectiveConfig passk = method->objective_defaults(), dapo = make_method("dapo")->objective_defaults();
  std::vector<FieldValue> a = fields_of(passk), b = fields_of(dapo);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].value, b[i].value) << a[i].key;
}

}  // namespace
}  // namespace ucas

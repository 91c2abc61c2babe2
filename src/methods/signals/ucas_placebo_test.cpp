// UCAS's placebos, and its options `clamp` and `sign`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

struct PlaceboResult {
  std::vector<float> advantage;
  std::map<std::string, std::vector<float>> rows;
  std::map<std::string, double> metrics;
};

PlaceboResult ucas_with(const Batch& batch, const std::vector<Setting>& settings) {
  auto method = make_method("ucas");
  apply(*method, settings);
  PlaceboResult result;
  result.advantage.assign(batch.token.size(), std::nanf(""));
  Recording recording;
  method->advantages(batch, result.advantage, recording);
  for (Recording::Row& row : recording.rows) result.rows[row.name] = row.values;
  result.metrics.insert(recording.metrics.begin(), recording.metrics.end());
  return result;
}

Setting placebo(const char* kind) { return {"placebo", std::string(kind), "test", false}; }

// Two prompts of eight responses with three tokens each, half of them right; all confidences and logits differ.
Batch sixteen(uint64_t seed) {
  std::vector<testing::Row> rows;
  for (int i = 0; i < 16; ++i) {
    const auto x = static_cast<float>(i * 5 % 16);
    rows.push_back({i / 8, i % 2 == 0 ? 1.0f : 0.0f, {x, x + 1, x + 2}, {x, 3 * x + 1, 20 - x}});
  }
  Batch batch = testing::make_batch(rows);
  batch.seed = seed;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    batch.responses[i].sample = static_cast<int64_t>(i % 8);
    batch.responses[i].verdict.decide(i % 2 == 0 ? VerdictKind::equal : VerdictKind::unequal, "test");
  }
  batch.groups[1].problem = 7;
  return batch;
}

std::vector<float> sorted_part(const std::vector<float>& values, size_t first, size_t count) {
  std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(first),
                          values.begin() + static_cast<std::ptrdiff_t>(first + count));
  std::ranges::sort(part);
  return part;
}

TEST(ucas_placebo, permuted_confidences_are_those_of_the_group_in_another_order) {
  const PlaceboResult plain = ucas_with(sixteen(3), {}),
                      permuted = ucas_with(sixteen(3), {placebo("permuted_confidence")});
  EXPECT_NE(permuted.rows.at("C"), plain.rows.at("C"));
  for (size_t g : {0, 8}) EXPECT_EQ(sorted_part(permuted.rows.at("C"), g, 8), sorted_part(plain.rows.at("C"), g, 8));
  EXPECT_EQ(permuted.rows.at("l_hat"), plain.rows.at("l_hat"));
  EXPECT_EQ(permuted.rows.at("A"), plain.rows.at("A"));
}

TEST(ucas_placebo, confidences_permuted_within_the_sign_keep_the_factors_of_right_and_wrong_and_the_net_push) {
  const PlaceboResult plain = ucas_with(sixteen(3), {}),
                      permuted = ucas_with(sixteen(3), {placebo("permuted_within_sign")});
  EXPECT_NE(permuted.rows.at("C"), plain.rows.at("C"));
  const auto factors = [](const PlaceboResult& result, size_t group, size_t wrong) {
    std::vector<float> W;
    for (size_t i = 8 * group + wrong; i < 8 * group + 8; i += 2) W.push_back(result.rows.at("W")[i]);
    std::ranges::sort(W);
    return W;
  };
  for (size_t group : {0, 1}) {
    for (size_t wrong : {0, 1}) {
      const std::vector<float> before = factors(plain, group, wrong), after = factors(permuted, group, wrong);
      for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(after[i], before[i], 1e-6) << group << wrong;
    }
  }
  double net = 0, net_permuted = 0;
  for (size_t i = 0; i < 16; ++i) {
    net += plain.rows.at("A_mod")[i];
    net_permuted += permuted.rows.at("A_mod")[i];
  }
  EXPECT_NEAR(net_permuted, net, 1e-5);
  EXPECT_NE(permuted.rows.at("A_mod"), plain.rows.at("A_mod"));
}

TEST(ucas_placebo, permuted_certainties_are_those_of_the_response_in_another_order) {
  const PlaceboResult plain = ucas_with(sixteen(3), {}),
                      permuted = ucas_with(sixteen(3), {placebo("permuted_certainty")});
  EXPECT_NE(permuted.rows.at("l_hat"), plain.rows.at("l_hat"));
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(sorted_part(permuted.rows.at("l_hat"), 3 * i, 3), sorted_part(plain.rows.at("l_hat"), 3 * i, 3));
  }
  EXPECT_EQ(permuted.rows.at("A_mod"), plain.rows.at("A_mod"));
}

TEST(ucas_placebo, permuted_rewards_are_those_of_the_group_in_another_order_and_leave_the_verdicts) {
  const Batch batch = sixteen(3);
  const PlaceboResult plain = ucas_with(batch, {}), permuted = ucas_with(batch, {placebo("permuted_reward")});
  EXPECT_NE(permuted.rows.at("A"), plain.rows.at("A"));
  for (size_t g : {0, 8}) EXPECT_EQ(sorted_part(permuted.rows.at("A"), g, 8), sorted_part(plain.rows.at("A"), g, 8));
  EXPECT_EQ(permuted.rows.at("C"), plain.rows.at("C"));
  EXPECT_EQ(batch.responses[0].reward, 1);
}

TEST(ucas_placebo, a_step_draws_the_same_again_and_another_step_draws_anew) {
  for (const char* kind : {"permuted_confidence", "permuted_within_sign", "permuted_certainty", "permuted_reward"}) {
    EXPECT_EQ(ucas_with(sixteen(5), {placebo(kind)}).advantage, ucas_with(sixteen(5), {placebo(kind)}).advantage);
    EXPECT_NE(ucas_with(sixteen(5), {placebo(kind)}).advantage, ucas_with(sixteen(6), {placebo(kind)}).advantage);
  }
}

// Of 4,000 steps: each response has each confidence in an eighth of them, within four deviations.
TEST(ucas_placebo, every_response_gets_every_confidence_equally_often) {
  std::map<float, int> first;
  constexpr int kSteps = 4000;
  for (uint64_t seed = 1; seed <= kSteps; ++seed) {
    ++first[ucas_with(sixteen(seed), {placebo("permuted_confidence")}).rows.at("C")[2]];
  }
  EXPECT_EQ(first.size(), 8u);
  const double deviation = std::sqrt(kSteps * (1.0 / 8) * (7.0 / 8));
  for (const auto& [C, count] : first) EXPECT_NEAR(count, kSteps / 8.0, 4 * deviation) << C;
}

TEST(ucas_placebo, the_order_of_rows_changes_no_bit) {
  Batch batch = sixteen(9);
  std::vector<testing::Row> rows;
  for (int i = 15; i >= 0; --i) {
    const auto x = static_cast<float>(i * 5 % 16);
    rows.push_back({i / 8, i % 2 == 0 ? 1.0f : 0.0f, {x, x + 1, x + 2}, {x, 3 * x + 1, 20 - x}});
  }
  Batch turned = testing::make_batch(rows);
  turned.seed = 9;
  for (size_t i = 0; i < 16; ++i) turned.responses[i].sample = static_cast<int64_t>((15 - i) % 8);
  turned.groups[0].problem = 7;
  turned.groups[1].problem = batch.groups[0].problem;
  for (const char* kind :
       {"permuted_confidence", "permuted_within_sign", "permuted_certainty", "permuted_reward", "matched_dapo"}) {
    const std::vector<float> a = ucas_with(batch, {placebo(kind)}).advantage;
    const std::vector<float> b = ucas_with(turned, {placebo(kind)}).advantage;
    for (size_t i = 0; i < 16; ++i) {
      for (size_t t = 0; t < 3; ++t) EXPECT_EQ(a[3 * i + t], b[3 * (15 - i) + t]) << kind;
    }
  }
}

TEST(ucas_placebo, matched_dapo_has_the_net_push_and_the_size_of_ucas_and_tells_no_response_from_another) {
  const Batch batch = sixteen(3);
  const std::vector<Setting> strong = {{"beta", 0.2, "test", false}};
  const PlaceboResult plain = ucas_with(batch, strong);
  std::vector<Setting> matched = strong;
  matched.push_back(placebo("matched_dapo"));
  const PlaceboResult dapo = ucas_with(batch, matched);
  double net = 0, net_dapo = 0, size = 0, size_dapo = 0;
  for (size_t t = 0; t < 48; ++t) {
    net += plain.advantage[t];
    net_dapo += dapo.advantage[t];
    size += std::fabs(plain.advantage[t]);
    size_dapo += std::fabs(dapo.advantage[t]);
    EXPECT_EQ(dapo.advantage[t], dapo.advantage[t / 3 % 2 == 0 ? 0 : 3]);  // one value for right, one for wrong
  }
  EXPECT_NEAR(net_dapo, net, 1e-4);
  EXPECT_LT(net, -1);
  EXPECT_NEAR(size_dapo, size, 1e-5 * size);
}

TEST(ucas_placebo, a_prompt_without_a_difference_stays_at_0) {
  Batch batch = sixteen(3);
  for (size_t i = 8; i < 16; ++i) batch.responses[i].reward = 1;
  for (const char* kind : {"permuted_confidence", "permuted_within_sign", "permuted_certainty", "matched_dapo"}) {
    const std::vector<float> A = ucas_with(batch, {placebo(kind)}).advantage;
    for (size_t t = 24; t < 48; ++t) EXPECT_EQ(A[t], 0) << kind;
  }
}

// A = +-0.707, W = 1 (one confidence); l_hat of the tokens 0 and 1.
TEST(ucas_clamp, without_it_certain_tokens_of_right_responses_fall_below_0) {
  const Batch batch = testing::make_batch({{0, 1, {2, 2}, {1, 3}}, {0, 0, {2, 2}, {1, 3}}});
  const std::vector<Setting> beta = {{"beta", 2.0, "test", false}};
  std::vector<Setting> open = beta;
  open.push_back({"clamp", false, "test", false});
  const std::vector<float> held = ucas_with(batch, beta).advantage, free = ucas_with(batch, open).advantage;
  const double A = std::sqrt(0.5);
  EXPECT_EQ(held[1], 0);
  EXPECT_NEAR(free[1], A - 2, 1e-5);
  EXPECT_NEAR(free[0], A, 1e-5);
  EXPECT_EQ(free[2], held[2]);
  EXPECT_EQ(free[3], held[3]);
}

// One right response, two long wrong ones whose reward overlong shaping has lowered, and a short wrong one between.
TEST(ucas_sign, a_wrong_response_with_a_positive_advantage_is_right_by_the_sign_and_wrong_by_the_verdict) {
  Batch batch = testing::make_batch({{0, 1, {10}, {1}}, {0, -1, {20}, {1}}, {0, -3, {12}, {1}}, {0, -3, {14}, {1}}});
  batch.responses[0].verdict.decide(VerdictKind::equal, "test");
  for (size_t i : {1, 2, 3}) batch.responses[i].verdict.decide(VerdictKind::unequal, "test");
  const PlaceboResult by_sign = ucas_with(batch, {});
  const PlaceboResult by_verdict = ucas_with(batch, {{"sign", std::string("verdict"), "test", false}});
  ASSERT_GT(by_sign.rows.at("A")[1], 0);
  ASSERT_GT(by_sign.rows.at("C_hat")[1], 1);
  EXPECT_LT(by_sign.rows.at("W")[1], 1);
  EXPECT_GT(by_verdict.rows.at("W")[1], 1);
  for (size_t i : {0, 2, 3}) EXPECT_EQ(by_sign.rows.at("W")[i], by_verdict.rows.at("W")[i]);
  EXPECT_NEAR(by_sign.metrics.at("ucas/wrong_rewarded_share"), 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace ucas

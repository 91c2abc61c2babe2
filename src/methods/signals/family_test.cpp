// Methods that weigh tokens or responses by the policy's own probabilities, each worked by hand on one group.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

using testing::LossCase;
using testing::run_objective;

// One group; response i has the log-probs lp[i] and is right where right[i]. Rewards 1 and 0.
Batch family_group(const std::vector<int>& right, const std::vector<std::vector<float>>& lp) {
  std::vector<testing::Row> rows;
  for (size_t i = 0; i < right.size(); ++i) {
    const std::vector<float> zeros(lp[i].size());
    rows.push_back({0, static_cast<float>(right[i]), zeros, zeros});
  }
  Batch batch = testing::make_batch(rows);
  batch.old_logprob.clear();
  for (size_t i = 0; i < right.size(); ++i) {
    batch.old_logprob.insert(batch.old_logprob.end(), lp[i].begin(), lp[i].end());
    batch.responses[i].verdict.decide(right[i] != 0 ? VerdictKind::equal : VerdictKind::unequal, "test");
  }
  batch.entropy.assign(batch.token.size(), 0.5f);
  batch.signal("ref_logprob") = batch.old_logprob;
  return batch;
}

std::vector<float> family_advantages(const Batch& batch, const char* name, const std::vector<Setting>& settings = {},
                                     const char* preset = "") {
  auto method = make_method(name, preset);
  apply(*method, settings);
  std::vector<float> advantage(batch.token.size(), std::nanf(""));
  Recording recording;
  method->advantages(batch, advantage, recording);
  return advantage;
}

Setting family_option(const char* key, double value) { return {key, value, "test", false}; }
Setting family_option(const char* key, const char* value) { return {key, std::string(value), "test", false}; }

void expect_tokens_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t t = 0; t < found.size(); ++t) EXPECT_NEAR(found[t], expected[t], 1e-5) << t;
}

const double kHalfDeviation = std::sqrt(0.5);  // z of one right and one wrong response, std over G - 1

TEST(ds_grpo_method, an_unlikely_right_response_is_worth_more_and_an_unlikely_wrong_one_less) {
  const Batch batch = family_group({1, 0}, {{-1, -3}, {-2}});
  const std::vector<Setting> gamma = {family_option("gamma_p", 0.1), family_option("gamma_n", 0.2)};
  expect_tokens_near(family_advantages(batch, "ds_grpo", gamma),
                     {kHalfDeviation + 0.4, kHalfDeviation + 0.4, -kHalfDeviation - 0.4});
  std::vector<Setting> mean = gamma;
  mean.push_back(family_option("length", "mean"));
  expect_tokens_near(family_advantages(batch, "ds_grpo", mean),
                     {kHalfDeviation + 0.2, kHalfDeviation + 0.2, -kHalfDeviation - 0.4});
}

TEST(ds_grpo_method, without_gamma_it_is_dapo) {
  const Batch batch = family_group({1, 0, 0}, {{-1}, {-2}, {-3}});
  EXPECT_EQ(family_advantages(batch, "ds_grpo", {family_option("gamma_p", 0.0), family_option("gamma_n", 0.0)}),
            family_advantages(batch, "dapo"));
}

TEST(ace_method, an_error_that_training_has_reinforced_is_punished_harder_and_right_ones_stay) {
  Batch batch = family_group({1, 0, 0}, {{-1, -1}, {-1, -1}, {-3, -3}});
  batch.signal("ref_logprob") = {-2, -2, -2, -2, -2, -2};  // c = 2, 2, -2
  const std::vector<float> plain = family_advantages(batch, "dapo");
  const double up = std::log1p(std::exp(2.0)), down = std::log1p(std::exp(-2.0));
  expect_tokens_near(family_advantages(batch, "ace", {family_option("alpha", 0.5)}),
                     {plain[0], plain[0], plain[2] * (1 + 0.5 * up), plain[2] * (1 + 0.5 * up),
                      plain[2] * (1 + 0.5 * down), plain[2] * (1 + 0.5 * down)});
  const double half = std::log1p(std::exp(1.0));
  EXPECT_NEAR(family_advantages(batch, "ace", {family_option("length", "mean")})[2], plain[2] * (1 + half), 1e-5);
}

TEST(ace_method, a_step_that_has_not_moved_yet_punishes_all_errors_alike) {
  const std::vector<float> A = family_advantages(family_group({1, 0}, {{-1}, {-5}}), "ace");
  EXPECT_NEAR(A[1], -kHalfDeviation * (1 + std::log(2)), 1e-5);
}

TEST(a3po_method, the_least_likely_fifth_of_right_and_the_likeliest_fifth_of_wrong_responses_count_five_times) {
  const Batch batch = family_group({1, 0}, {{-1, -4, -2, -3, -1}, {-2, -1, -3, -4, -5}});
  expect_tokens_near(family_advantages(batch, "a3po"),
                     {kHalfDeviation, 5 * kHalfDeviation, kHalfDeviation, kHalfDeviation, kHalfDeviation,
                      -kHalfDeviation, -5 * kHalfDeviation, -kHalfDeviation, -kHalfDeviation, -kHalfDeviation});
}

TEST(a3po_method, at_least_one_token_of_a_response_counts_more) {
  expect_tokens_near(family_advantages(family_group({1, 0}, {{-1, -2}, {-1}}), "a3po"),
                     {kHalfDeviation, 5 * kHalfDeviation, -5 * kHalfDeviation});
}

TEST(qae_method, a_hard_prompt_rewards_its_right_responses_alone_and_an_easy_one_punishes_its_wrong_ones) {
  const std::vector<float> hard = family_advantages(family_group({1, 0, 0, 0}, {{-1}, {-1}, {-1}, {-1}}), "qae");
  expect_tokens_near(hard, {2, 0, 0, 0});  // std of 1, 0, 0, 0 is 1 / 2
  const std::vector<float> easy = family_advantages(family_group({1, 1, 1, 0}, {{-1}, {-1}, {-1}, {-1}}), "qae");
  expect_tokens_near(easy, {0, 0, 0, -2});
}

// Rewards 0 0 0 1 1 1 1 1 of deviation sqrt(15 / 56): the 0.4-quantile at place 2.8 is 0.8.
TEST(qae_method, the_released_baseline_lies_between_two_rewards) {
  const Batch batch = family_group({1, 1, 1, 1, 1, 0, 0, 0}, std::vector<std::vector<float>>(8, {-1}));
  const double deviation = std::sqrt(15.0 / 56);
  const std::vector<float> A = family_advantages(batch, "qae", {}, "released");
  EXPECT_NEAR(A[0], 0.2 / deviation, 1e-5);
  EXPECT_NEAR(A[7], -0.8 / deviation, 1e-5);
  EXPECT_EQ(family_advantages(batch, "qae")[0], 0);
}

// p <= 1 - K is hard: with five responses and K = 0.4 up to three right ones.
TEST(qae_method, the_two_regimes_meet_where_the_share_of_right_responses_is_1_minus_k) {
  const std::vector<std::vector<float>> lp(5, {-1});
  EXPECT_GT(family_advantages(family_group({1, 1, 1, 0, 0}, lp), "qae")[0], 0);
  EXPECT_EQ(family_advantages(family_group({1, 1, 1, 1, 0}, lp), "qae")[0], 0);
  EXPECT_GT(family_advantages(family_group({1, 1, 1, 1, 0}, lp), "qae", {family_option("quantile", 0.2)})[0], 0);
}

TEST(steer_method, the_token_that_would_change_the_entropy_most_counts_least) {
  const float ln2 = std::log(0.5f);
  const Batch batch = family_group({1, 0}, {{ln2, -0.5f}, {-0.5f}});  // H = 0.5: Omega = 0 where ln pi = -0.5
  expect_tokens_near(family_advantages(batch, "steer"),
                     {0.8 * kHalfDeviation, 1.2 * kHalfDeviation, -1.2 * kHalfDeviation});
  const double omega = kHalfDeviation * 0.5 * (std::log(2) - 0.5);
  expect_tokens_near(family_advantages(batch, "steer", {}, "exponential"),
                     {0.8 * kHalfDeviation, kHalfDeviation, -kHalfDeviation});
  EXPECT_GT(omega, 0.02);  // so that it is the step's own largest that sets k
}

// Ten tokens with A > 0 and ten with A < 0, log-probs -1 .. -10 each.
std::vector<float> stare_gradient(const std::vector<Setting>& settings, float entropy) {
  auto method = make_method("stare");
  apply(*method, settings);
  LossCase mini;
  std::vector<float> lp;
  for (int t = 1; t <= 10; ++t) lp.push_back(static_cast<float>(-t));
  const std::vector<float> H(10, entropy);
  mini.add(lp, lp, std::vector<float>(10, 1), H);
  mini.add(lp, lp, std::vector<float>(10, -1), H);
  std::vector<float> d = run_objective(*method, method->objective_defaults(), mini, 0).d_logprob;
  for (float& x : d) x *= -20;
  return d;
}

TEST(stare_method, the_least_likely_tenth_of_the_rewarded_tokens_counts_more_while_entropy_is_low) {
  std::vector<double> expected(20, 1);
  std::fill(expected.begin() + 10, expected.end(), -1);
  expect_tokens_near(stare_gradient({}, 0.5f), expected);  // above the target of 0.3: GRPO
  expected[9] = 1.1;
  expect_tokens_near(stare_gradient({}, 0.1f), expected);
  expected[19] = -0.9;
  expect_tokens_near(stare_gradient({family_option("variant", "c2")}, 0.1f), expected);
}

TEST(stare_method, eleven_tokens_have_a_tenth_of_two) {
  auto method = make_method("stare");
  LossCase mini;
  std::vector<float> lp(11, -1);
  lp[3] = -2;
  lp[7] = -3;
  mini.add(lp, lp, std::vector<float>(11, 1), std::vector<float>(11, 0));
  std::vector<float> d = run_objective(*method, method->objective_defaults(), mini, 0).d_logprob;
  EXPECT_EQ(std::count_if(d.begin(), d.end(), [&](float x) { return x < d[0]; }), 2);
  EXPECT_LT(d[3], d[0]);
  EXPECT_LT(d[7], d[0]);
}

// Four tokens of a wrong response, the policy as it was; log-probs -1 .. -4, and what they are under min-p.
LossCase lp_reg_case(const std::vector<float>& under_min_p) {
  LossCase mini;
  const std::vector<float> lp = {-1, -2, -3, -4};
  mini.add(lp, lp, std::vector<float>(4, -1));
  mini.min_p_logprob = under_min_p;
  return mini;
}

// Derivatives of the four tokens, of a mean over them.
std::vector<float> lp_reg_gradient(const char* preset, const LossCase& mini) {
  auto method = make_method("lp_reg", preset);
  ucas::apply(*method, {family_option("share_wrong", 0.5), family_option("coef", 2)});
  std::vector<float> d = run_objective(*method, method->objective_defaults(), mini, 0).d_logprob;
  for (float& x : d) x *= static_cast<float>(d.size());
  return d;
}

TEST(lp_reg_method, the_least_likely_half_of_a_wrong_response_is_drawn_to_its_probability_under_min_p) {
  const double half = std::log(0.5);  // pi < q = 2 pi: A rho = -1, and 2 (1 - q / pi) = -2
  const auto q = [&](double shift) { return static_cast<float>(shift - half); };
  const float cut = -std::numeric_limits<float>::infinity();
  for (const char* preset : {"paper", "released"}) {
    expect_tokens_near(lp_reg_gradient(preset, lp_reg_case({-1, -2, q(-3), q(-4)})), {1, 1, 1 - 2, 1 - 2});
    LossCase right = lp_reg_case({-1, -2, q(-3), q(-4)});
    for (float& A : right.advantage) A = 1;
    expect_tokens_near(lp_reg_gradient(preset, right), {-1, -1, -1, -1});
  }
  // Cut away; likelier than q, which the article draws to it, too.
  expect_tokens_near(lp_reg_gradient("released", lp_reg_case({-1, -2, cut, -4.5f})), {1, 1, 1, 1});
  expect_tokens_near(lp_reg_gradient("paper", lp_reg_case({-1, -2, cut, -4.5f})),
                     {1, 1, 1, 1 + 2 * (1 - std::exp(-0.5))});
}

// Four right tokens less likely than any wrong one: none of the wrong ones is below the median of all.
TEST(lp_reg_method, the_article_takes_its_quantile_over_all_tokens_the_release_over_those_of_wrong_responses) {
  LossCase mini;
  const std::vector<float> wrong = {-1, -2, -3, -4}, right = {-5, -6, -7, -8};
  mini.add(wrong, wrong, std::vector<float>(4, -1));
  mini.add(right, right, std::vector<float>(4, 1));
  for (int t = 1; t <= 8; ++t) mini.min_p_logprob.push_back(0.5f - static_cast<float>(t));
  const std::vector<float> paper = lp_reg_gradient("paper", mini), released = lp_reg_gradient("released", mini);
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_FLOAT_EQ(paper[t], 1) << t;
    EXPECT_EQ(released[t] < 1, t >= 2) << t;
  }
}

TEST(lp_reg_method, the_article_clips_the_ratio_of_wrong_tokens_too) {
  LossCase mini;
  mini.add({-1, -2}, {-6, -3}, {-1, -1});
  mini.min_p_logprob = {-1, -2};
  expect_tokens_near(lp_reg_gradient("paper", mini), {0, std::exp(1.0)});
  expect_tokens_near(lp_reg_gradient("released", mini), {std::exp(5.0), std::exp(1.0)});
}

// Two responses of five tokens; the last two of each have a high entropy, the third and the last are the likeliest.
TEST(simko_method, shares_out_the_gradient_of_uncertain_right_tokens_and_punishes_the_likeliest_uncertain_wrong_ones) {
  auto method = make_method("simko");
  ucas::apply(*method, {family_option("alpha", 0.25), family_option("tau", 0.5), family_option("penalty", 3)});
  LossCase mini;
  const std::vector<float> lp(5, -2), H = {0, 0.1f, 0.2f, 0.9f, 1};
  mini.add(lp, lp, std::vector<float>(5, 1), H);
  mini.add(lp, lp, std::vector<float>(5, -1), H);
  mini.margin = {-1, -1, 0, -1, 0, -1, -1, 0, -1, 0};
  testing::ObjectiveResult result = run_objective(*method, method->objective_defaults(), mini, 0);
  for (auto* d : {&result.d_logprob, &result.d_likely})
    for (float& x : *d) x *= 10;  // of a mean over ten
  expect_tokens_near(result.d_logprob, {-1, -1, -1, -0.75, -0.75, 1, 1, 1, 1, 3});
  expect_tokens_near(result.d_likely, {0, 0, 0, -0.25, -0.25, 0, 0, 0, 0, 0});
  EXPECT_NEAR(result.loss * 10, -5 + 4 + 3, 1e-5);
  mini.logprob.assign(10, -1);  // all ratios above the clip: right tokens have no gradient, wrong ones e times as much
  result = run_objective(*method, method->objective_defaults(), mini, 0);
  for (int t = 0; t < 5; ++t) EXPECT_EQ(std::pair(result.d_logprob[t], result.d_likely[t]), std::pair(0.0f, 0.0f)) << t;
  EXPECT_NEAR(result.d_logprob[9] * 10, 3 * std::exp(1.0), 1e-5);
}

}  // namespace
}  // namespace ucas

// GSPO, LUSPO, CISPO, SAPO, GMPO and DPPO: what each does with a ratio. Their numbers are in algorithm_cases_test.cpp,
// their derivatives in aggregate_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

using testing::LossCase;
using testing::ObjectiveResult;
using testing::run_objective;

// One response whose tokens have these log-ratios.
ObjectiveResult at(const char* name, const std::vector<float>& moved, float A, const char* preset = "") {
  auto method = make_method(name, preset);
  std::vector<float> old(moved.size(), -2), lp, advantage(moved.size(), A);
  for (float m : moved) lp.push_back(-2 + m);
  LossCase mini;
  mini.add(lp, old, advantage);
  return run_objective(*method, method->objective_defaults(), mini, 0);
}

TEST(ratio_methods, the_first_update_is_the_plain_policy_gradient) {
  for (const char* name : {"gspo", "cispo", "sapo", "gmpo", "dppo"}) {
    for (float A : {1.5f, -0.75f}) {
      for (float d : at(name, {0, 0}, A).d_logprob) EXPECT_FLOAT_EQ(d, -A / 2) << name;
    }
  }
}

TEST(ratio_methods, an_advantage_of_zero_has_no_loss_and_no_gradient) {
  for (const char* name : {"gspo", "luspo", "cispo", "sapo", "gmpo", "dppo"}) {
    ObjectiveResult result = at(name, {0.3f, -4, 30}, 0);
    EXPECT_EQ(result.loss, 0) << name;
    EXPECT_EQ(result.d_logprob, (std::vector<float>{0, 0, 0})) << name;
  }
}

TEST(ratio_methods, extreme_ratios_stay_finite_and_a_nan_is_not_hidden) {
  for (const char* name : {"gspo", "luspo", "cispo", "sapo", "gmpo", "dppo"}) {
    for (float A : {1.0f, -1.0f}) {
      for (float moved : {500.0f, -500.0f}) {
        ObjectiveResult result = at(name, {moved}, A);
        EXPECT_TRUE(std::isfinite(result.loss)) << name;
        EXPECT_TRUE(std::isfinite(result.d_logprob[0])) << name;
      }
      ObjectiveResult result = at(name, {std::numeric_limits<float>::quiet_NaN()}, A);
      EXPECT_TRUE(std::isnan(result.d_logprob[0])) << name;
    }
  }
}

TEST(gspo_method, one_ratio_clips_the_response_as_a_whole) {
  EXPECT_EQ(at("gspo", {0.001f, 0.001f}, 1).d_logprob, (std::vector<float>{0, 0}));
  ObjectiveResult cancel = at("gspo", {0.25f, -0.25f}, 1);  // up and down cancel: ratio 1
  EXPECT_NEAR(cancel.d_logprob[0], -0.5, 1e-6);
  EXPECT_EQ(cancel.metrics.clipfrac, 0.0);
}

TEST(luspo_method, a_response_counts_by_its_length_and_every_token_the_same) {
  auto method = make_method("luspo");
  LossCase mini;
  mini.add({-2, -2, -2, -2}, {-2, -2, -2, -2}, {1, 1, 1, 1});
  mini.add({-2}, {-2}, {-1});
  ObjectiveResult luspo = run_objective(*method, method->objective_defaults(), mini, 0);
  EXPECT_EQ(luspo.d_logprob, (std::vector<float>{-0.5f, -0.5f, -0.5f, -0.5f, 0.5f}));
  EXPECT_EQ(luspo.loss, -1.5);  // (-4 + 1) / 2
  auto gspo = make_method("gspo");
  EXPECT_EQ(run_objective(*gspo, gspo->objective_defaults(), mini, 0).loss, 0);  // (-1 + 1) / 2
}

TEST(luspo_method, it_clips_a_response_as_a_whole_at_its_own_bounds) {
  EXPECT_NE(at("luspo", {0.002f, 0.002f}, 1).d_logprob, (std::vector<float>{0, 0}));
  EXPECT_EQ(at("luspo", {0.003f, 0.003f}, 1).d_logprob, (std::vector<float>{0, 0}));
  EXPECT_EQ(at("luspo", {-0.0021f, -0.0021f}, -1).d_logprob, (std::vector<float>{0, 0}));
}

TEST(cispo_method, a_token_beyond_the_bound_keeps_a_bounded_gradient) {
  EXPECT_FLOAT_EQ(at("cispo", {3}, 1).d_logprob[0], -1.2f);
  EXPECT_EQ(at("cispo", {3}, 1).metrics.clipfrac, 1.0);
  EXPECT_FLOAT_EQ(at("cispo", {-3}, 1).d_logprob[0], -std::exp(-3.0f));  // no lower bound
  EXPECT_FLOAT_EQ(at("cispo", {1}, 1, "trl").d_logprob[0], -std::exp(1.0f));
  EXPECT_FLOAT_EQ(at("cispo", {3}, 1, "trl").d_logprob[0], -5.0f);  // the cap itself
}

TEST(cispo_method, the_weight_has_no_gradient_of_its_own) {
  ObjectiveResult result = at("cispo", {0.1f}, 2);
  EXPECT_NEAR(result.loss, result.d_logprob[0] * -1.9, 1e-5);  // loss = -w A lp and derivative = -w A
}

TEST(sapo_method, the_gate_closes_smoothly_and_faster_for_wrong_responses) {
  float near = at("sapo", {0.5f}, 1).d_logprob[0], far = at("sapo", {2}, 1).d_logprob[0];
  EXPECT_LT(near, far);  // both negative
  EXPECT_LT(far, 0);
  EXPECT_GT(std::abs(at("sapo", {1.5f}, 1).d_logprob[0]), std::abs(at("sapo", {1.5f}, -1).d_logprob[0]));
}

TEST(gmpo_method, a_clipped_token_loses_its_gradient_and_the_others_keep_theirs) {
  ObjectiveResult result = at("gmpo", {1, 0.1f}, 1);
  EXPECT_EQ(result.d_logprob[0], 0.0f);
  EXPECT_NEAR(result.d_logprob[1], -0.5 * std::exp((0.4 + 0.1) / 2), 1e-6);
  EXPECT_EQ(result.metrics.clipfrac, 0.5);
  // One-sided: a right token may fall as it likes, a wrong one may rise.
  EXPECT_NEAR(at("gmpo", {-1, -1}, 1).d_logprob[0], -0.5 * std::exp(-1), 1e-6);
  EXPECT_NEAR(at("gmpo", {1, 1}, -1).d_logprob[0], 0.5 * std::exp(1), 1e-6);
}

// One token of these probabilities under the sampler and the policy.
ObjectiveResult between(const char* preset, double mu, double pi, float A) {
  auto method = make_method("dppo", preset);
  LossCase mini;
  mini.add({static_cast<float>(std::log(pi))}, {static_cast<float>(std::log(mu))}, {A});
  return run_objective(*method, method->objective_defaults(), mini, 0);
}

TEST(dppo_method, a_token_far_out_is_not_pushed_further_and_may_come_back) {
  for (const char* preset : {"tv", "kl"}) {
    EXPECT_EQ(between(preset, 0.4, 0.6, 1).d_logprob[0], 0) << preset;  // TV 0.2, KL 0.081
    EXPECT_EQ(between(preset, 0.6, 0.4, -1).d_logprob[0], 0) << preset;
    EXPECT_EQ(between(preset, 0.4, 0.6, 1).metrics.clipfrac, 1) << preset;
    EXPECT_NEAR(between(preset, 0.4, 0.6, -1).d_logprob[0], 1.5, 1e-5) << preset;
    EXPECT_NEAR(between(preset, 0.6, 0.4, 1).d_logprob[0], -1 / 1.5, 1e-5) << preset;
  }
}

TEST(dppo_method, a_rare_token_may_change_by_a_factor_that_ppo_would_clip) {
  for (const char* preset : {"tv", "kl"}) {
    EXPECT_NEAR(between(preset, 1e-3, 4e-3, 1).d_logprob[0], -4, 1e-4) << preset;
    EXPECT_FLOAT_EQ(between(preset, 1e-4, 4e-3, 1).d_logprob[0], -10) << preset;  // the cap
  }
  EXPECT_EQ(between("tv", 0.5, 0.64, 1).metrics.clipfrac, 0);
  EXPECT_EQ(between("tv", 0.5, 0.66, 1).metrics.clipfrac, 1);
  EXPECT_EQ(between("kl", 0.5, 0.64, 1).metrics.clipfrac, 0);  // KL 0.0408
  EXPECT_EQ(between("kl", 0.5, 0.66, 1).metrics.clipfrac, 1);  // KL 0.0541
}

TEST(dppo_method, certain_tokens_have_a_divergence_too) {
  EXPECT_EQ(between("kl", 1, 1, 1).d_logprob[0], -1);
  EXPECT_EQ(between("kl", 0.99, 1, 1).d_logprob[0], 0);              // 1 - pi = 0: the KL is infinite
  EXPECT_NEAR(between("kl", 1, 0.97, -1).d_logprob[0], 0.97, 1e-6);  // KL 0.030
  EXPECT_EQ(between("kl", 1, 0.95, -1).d_logprob[0], 0);             // KL 0.051
}

TEST(dppo_method, the_anchor_is_the_sampler_unless_said_otherwise) {
  LossCase mini;
  mini.add({std::log(0.6f)}, {std::log(0.55f)}, {1});
  mini.rollout_logprob = {std::log(0.4f)};
  auto method = make_method("dppo");
  EXPECT_EQ(run_objective(*method, method->objective_defaults(), mini, 0).d_logprob[0], 0);
  apply(*method, {{"anchor", std::string("old"), "test", false}});
  EXPECT_NEAR(run_objective(*method, method->objective_defaults(), mini, 0).d_logprob[0], -0.6 / 0.55, 1e-5);
}

}  // namespace
}  // namespace ucas

// Methods that compare a response with those of its prompt or its batch, each on numbers that can be checked by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::Advantages;
using testing::compute_advantages;
using testing::group_of;
using testing::make_batch;
using testing::per_response;
using testing::text;

ObjectiveConfig objective_of(const char* method, const char* preset) {
  return make_method(method, preset)->objective_defaults();
}

TEST(group_relative, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  for (const char* name : {"grpo", "drgrpo", "rloo", "reinforce_pp", "reinforce_pp_baseline", "intuitor"}) {
    EXPECT_TRUE(testing::order_never_matters(name)) << name;
  }
}

TEST(grpo_method, presets_are_those_of_the_released_trainers) {
  EXPECT_EQ(objective_of("grpo", "paper").kl_coeff, 0);
  EXPECT_EQ(objective_of("grpo", "deepseek").kl_coeff, 0.04);
  EXPECT_EQ(objective_of("grpo", "deepseek").kl_estimator, KlEstimator::k3);
  for (const char* token_mean : {"verl", "trl"}) {
    EXPECT_EQ(objective_of("grpo", token_mean).aggregation, Aggregation::token_mean);
  }
  EXPECT_EQ(objective_of("grpo", "oat").aggregation, Aggregation::seq_mean_token_mean);
  EXPECT_EQ(objective_of("grpo", "verl").dual_clip, 3);
  Batch batch = group_of({1, 0, 0, 1}, {1, 1, 1, 1});
  double std = std::sqrt(1.0 / 3);
  EXPECT_NEAR(compute_advantages(batch, "grpo", "verl").advantage[0], 0.5 / (std + 1e-6), 1e-7);
  EXPECT_NEAR(compute_advantages(batch, "grpo", "oat").advantage[0], 0.5 / (std + 1e-8), 1e-7);
  EXPECT_NEAR(compute_advantages(batch, "grpo", "trl").advantage[0], 0.5 / (std + 1e-4), 1e-7);
  Batch alone = group_of({0.5f}, {2});
  EXPECT_NEAR(compute_advantages(alone, "grpo", "verl").advantage[0], 0.5, 1e-6);
  EXPECT_EQ(compute_advantages(alone, "grpo", "oat").advantage[0], 0.0f);
  EXPECT_EQ(compute_advantages(alone, "grpo", "trl").advantage[0], 0.0f);
}

TEST(drgrpo_method, the_spread_of_a_group_is_not_divided_out) {
  Batch batch = group_of({1, 0, 0, 0}, {1, 2, 3, 1});
  EXPECT_EQ(per_response(batch, compute_advantages(batch, "drgrpo")), (std::vector<float>{0.75, -0.25, -0.25, -0.25}));
}

TEST(drgrpo_method, the_two_forms_differ_in_the_divisor_and_in_a_group_of_one) {
  EXPECT_EQ(objective_of("drgrpo", "oat").aggregation, Aggregation::row_mean_token_sum_norm);
  EXPECT_EQ(objective_of("drgrpo", "verl").aggregation, Aggregation::seq_mean_token_sum_norm);
  for (const char* preset : {"oat", "verl"}) EXPECT_EQ(objective_of("drgrpo", preset).dual_clip, 0);
  Batch alone = group_of({0.5f}, {2});
  EXPECT_EQ(compute_advantages(alone, "drgrpo").advantage[0], 0.0f);
  EXPECT_EQ(compute_advantages(alone, "drgrpo", "verl").advantage[0], 0.5f);
}

TEST(rloo_method, the_baseline_is_the_mean_of_the_others) {
  Batch batch = group_of({1, 0, 0, 0.5f}, {1, 2, 3, 1});
  std::vector<float> A = per_response(batch, compute_advantages(batch, "rloo"));
  EXPECT_NEAR(A[0], 1 - 0.5 / 3, 1e-7);
  EXPECT_NEAR(A[1], 0 - 1.5 / 3, 1e-7);
  EXPECT_NEAR(A[3], 0.5 - 1.0 / 3, 1e-7);
}

TEST(rloo_method, alone_a_response_is_worth_its_reward_or_nothing) {
  Batch alone = group_of({0.5f}, {2});
  EXPECT_EQ(compute_advantages(alone, "rloo").advantage[1], 0.5f);
  EXPECT_EQ(compute_advantages(alone, "rloo", "", {text("group_of_one", "zero")}).advantage[1], 0.0f);
}

TEST(reinforce_pp_method, the_baseline_is_the_mean_over_the_tokens_of_the_whole_batch) {
  Batch batch = group_of({1, 0}, {1, 3});  // returns 1 0 0 0: mean 0.25, variance 0.25
  Advantages s = compute_advantages(batch, "reinforce_pp");
  EXPECT_EQ(s.rows["R"], (std::vector<float>{1, 0, 0, 0}));
  EXPECT_NEAR(s.advantage[0], 1.5, 1e-6);
  for (size_t t = 1; t < 4; ++t) EXPECT_NEAR(s.advantage[t], -0.5, 1e-6);
}

TEST(reinforce_pp_method, gamma_discounts_what_is_far_away) {
  Batch batch = group_of({1, 0}, {3, 1});
  Advantages s = compute_advantages(batch, "reinforce_pp", "", {{"gamma", 0.5, "gamma", false}});
  EXPECT_EQ(s.rows["R"], (std::vector<float>{0.25, 0.5, 1, 0}));
}

TEST(reinforce_pp_method, the_kl_penalty_is_paid_token_by_token) {
  Batch batch = group_of({1, 0}, {3, 1});
  batch.reward_kl = {0.25f, 0, -0.5f, 0.125f};
  batch.responses[0].kl_penalty = -0.25f;  // and the reward is what is left, as the trainer sets it
  batch.responses[0].reward = 1.25f;
  batch.responses[1].kl_penalty = 0.125f;
  batch.responses[1].reward = -0.125f;
  EXPECT_EQ(compute_advantages(batch, "reinforce_pp").rows["R"], (std::vector<float>{1.25, 1.5, 1.5, -0.125}));
}

TEST(reinforce_pp_method, is_content_with_one_response_per_prompt) {
  Batch batch = make_batch({{0, 1, {1}, {1}}, {1, 0, {1}, {1}}});
  Advantages s = compute_advantages(batch, "reinforce_pp");
  EXPECT_NEAR(s.advantage[0], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(s.advantage[1], -std::sqrt(0.5), 1e-6);
}

TEST(reinforce_pp_baseline_method, a_prompt_answered_always_alike_stands_at_the_mean_of_the_batch) {
  Batch batch = make_batch({{0, 1, {1}, {1}}, {0, 0, {1}, {1}}, {1, 1, {1}, {1}}, {1, 1, {1}, {1}}});
  Advantages s = compute_advantages(batch, "reinforce_pp_baseline");
  EXPECT_EQ(s.rows["A"], (std::vector<float>{0.5, -0.5, 0, 0}));
  EXPECT_NEAR(s.advantage[0], 0.5 / std::sqrt(0.5 / 3), 1e-6);
  EXPECT_EQ(s.advantage[2], 0.0f);
  EXPECT_EQ(s.advantage[3], 0.0f);
}

TEST(reinforce_pp_baseline_method, a_long_response_counts_with_each_token) {
  Batch batch = group_of({1, 0}, {1, 3});  // centred 0.5 -0.5 -0.5 -0.5: mean -0.25, variance 0.25
  Advantages s = compute_advantages(batch, "reinforce_pp_baseline");
  EXPECT_NEAR(s.advantage[0], 1.5, 1e-6);
  EXPECT_NEAR(s.advantage[1], -0.5, 1e-6);
}

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
  EXPECT_EQ(make_method("simplerl", "released")->objective_defaults().kl_coeff, 1e-3);
}

TEST(simplerl, its_advantages_are_those_of_grpo) {
  std::vector<testing::Row> rows;
  for (float reward : {1.0f, 0.0f, 0.0f, 1.0f, 0.0f}) rows.push_back({0, reward, {12, 12}, {1, 2}});
  for (float reward : {0.7f, 0.7f, 0.7f}) rows.push_back({1, reward, {12}, {1}});
  Batch batch = testing::make_batch(rows);
  std::vector<float> A(batch.token.size()), of_grpo(batch.token.size());
  Recording recording;
  make_method("simplerl")->advantages(batch, A, recording);
  make_method("grpo")->advantages(batch, of_grpo, recording);
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

TEST(intuitor_method, self_certainty_with_or_without_ln_v_gives_the_same_advantages) {
  Batch C = group_of({0, 0, 1, 0}, {2, 3, 0, 1}), kl = C;
  for (float& c : kl.confidence) c -= 11.9312f;  // ln 152,064
  Advantages of_C = compute_advantages(C, "intuitor"), of_kl = compute_advantages(kl, "intuitor");
  for (size_t t = 0; t < of_C.advantage.size(); ++t) EXPECT_NEAR(of_C.advantage[t], of_kl.advantage[t], 1e-6);
  EXPECT_GT(of_C.advantage.back(), 0.5f);
  EXPECT_LT(of_C.advantage.front(), -0.5f);
}

TEST(intuitor_method, never_looks_at_an_answer) {
  EXPECT_FALSE(make_method("intuitor")->needs().labels);
  Batch batch = group_of({0, 0, 1, 0}, {2, 3, 1, 1});
  Advantages before = compute_advantages(batch, "intuitor");
  for (Response& o : batch.responses) o.reward = o.score = 1 - o.reward;
  EXPECT_EQ(compute_advantages(batch, "intuitor").advantage, before.advantage);
  EXPECT_EQ(before.rows["u"], (std::vector<float>{12.5, 15, 16, 18}));
}

}  // namespace
}  // namespace ucas

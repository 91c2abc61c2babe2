#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

testing::Row row(int64_t group, float reward, size_t length) {
  return {group, reward, std::vector<float>(length), std::vector<float>(length)};
}

Batch example() {
  Batch batch = testing::make_batch({row(0, 1, 3), row(0, 0, 2), row(1, 0, 3), row(1, 1, 1)});
  batch.signal("value") = {0.4f, 0.5f, 0.7f, 0.6f, 0.3f, 0.5f, 0.2f, 0.1f, 0.8f};
  return batch;
}

std::unique_ptr<Method> ppo(const std::string& preset = "orz") { return make_method("ppo", preset); }

std::vector<float> advantages(const Method& method, const Batch& batch) {
  std::vector<float> A(batch.token.size(), 99.0f);
  Recording recording;
  method.advantages(batch, A, recording);
  return A;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t t = 0; t < got.size(); ++t) EXPECT_NEAR(got[t], want[t], 2e-6) << t;
}

TEST(ppo, normalises_over_the_step_as_open_reasoner_zero_does) {
  expect_near(advantages(*ppo(), example()),
              {1.502486f, 1.256624f, 0.764902f, -1.44785f, -0.710266f, -1.201988f, -0.464405f, -0.218543f, 0.51904f});
}

TEST(ppo, normalises_over_the_step_as_verl_does) {
  expect_near(advantages(*ppo("verl"), example()),
              {1.416557f, 1.184757f, 0.721156f, -1.365046f, -0.669645f, -1.133246f, -0.437845f, -0.206045f, 0.489356f});
}

TEST(ppo, the_critic_learns_the_reward_itself_without_discount) {
  std::vector<float> returns(9);
  ppo()->returns(example(), returns);
  EXPECT_EQ(returns, (std::vector<float>{1, 1, 1, 0, 0, 0, 0, 0, 1}));
}

TEST(ppo, the_critic_learns_the_lambda_return_under_discount) {
  std::unique_ptr<Method> method = ppo();
  apply(*method, {{"gamma", 0.99, "test"}, {"lambda", 0.95, "test"}});
  std::vector<float> returns(9);
  method->returns(example(), returns);
  expect_near(returns, {0.941879f, 0.97515f, 1, 0.01485f, 0, 0.014555f, 0.00495f, 0, 1});
}

TEST(ppo, a_prompt_that_is_always_right_still_teaches_where_the_critic_doubted) {
  Batch batch = testing::make_batch({row(0, 1, 2), row(0, 1, 2)});
  batch.signal("value") = {0.2f, 0.9f, 0.2f, 0.9f};
  std::vector<float> A = advantages(*ppo(), batch);
  EXPECT_GT(A[0], 0);
  EXPECT_LT(A[1], 0);
}

TEST(ppo, a_critic_that_was_right_about_everything_leaves_nothing_to_learn) {
  Batch batch = example();
  batch.signal("value") = {1, 1, 1, 0, 0, 0, 0, 0, 1};
  for (const char* preset : {"orz", "verl"}) EXPECT_EQ(advantages(*ppo(preset), batch), std::vector<float>(9, 0.0f));
}

TEST(ppo, one_token_or_none_gives_exactly_nothing) {
  Batch one = testing::make_batch({row(0, 1, 1), row(0, 1, 0)});
  one.signal("value") = {0.3f};
  EXPECT_EQ(advantages(*ppo(), one), std::vector<float>{0.0f});
  Batch none = testing::make_batch({row(0, 1, 0), row(0, 0, 0)});
  EXPECT_TRUE(advantages(*ppo(), none).empty());
}

// The same responses in any order have the same advantages, bit for bit.
TEST(ppo, the_order_of_responses_changes_nothing) {
  Rng rng(11, 0);
  std::vector<testing::Row> rows;
  std::vector<std::vector<float>> values;
  for (int64_t i = 0; i < 40; ++i) {
    auto length = static_cast<size_t>(rng.below(30));
    rows.push_back(row(i, static_cast<float>(rng.below(2)), length));
    values.emplace_back();
    for (size_t t = 0; t < length; ++t) values.back().push_back(static_cast<float>(rng.uniform()));
  }
  auto run = [&](const std::vector<int64_t>& order) {
    std::vector<testing::Row> shuffled;
    for (int64_t i : order) shuffled.push_back(rows[static_cast<size_t>(i)]);
    Batch batch = testing::make_batch(shuffled);
    for (int64_t i : order) {
      batch.signal("value").insert(batch.signal("value").end(), values[static_cast<size_t>(i)].begin(),
                                   values[static_cast<size_t>(i)].end());
    }
    std::vector<float> A = advantages(*ppo(), batch);
    std::vector<std::vector<float>> by_row(rows.size());
    for (size_t k = 0; k < order.size(); ++k) {
      const Response& o = batch.responses[k];
      by_row[static_cast<size_t>(order[k])] = {A.begin() + o.first, A.begin() + o.first + o.length};
    }
    return by_row;
  };
  std::vector<int64_t> in_order(rows.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  auto want = run(in_order);
  for (int64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(run(epoch_order(1, seed, 40)), want);
}

TEST(ppo, its_presets_are_those_of_the_article_and_of_verl) {
  std::unique_ptr<Method> orz = ppo(), verl = ppo("verl");
  EXPECT_EQ(orz->row().presets.front(), "orz");
  CriticConfig a = orz->needs().critic.value(), b = verl->needs().critic.value();
  EXPECT_EQ(a.updates, 12);
  EXPECT_EQ(a.value_clip, 0.2);
  EXPECT_EQ(a.optimizer.lr, 5e-6);
  EXPECT_EQ(a.optimizer.beta2, 0.95);
  EXPECT_EQ(a.optimizer.weight_decay, 0);
  EXPECT_EQ(a.optimizer.warmup_steps, 50);
  EXPECT_EQ(b.updates, 1);
  EXPECT_EQ(b.value_clip, 0.5);
  EXPECT_EQ(orz->objective_defaults().dual_clip, 0);
  EXPECT_EQ(verl->objective_defaults().dual_clip, 3);
  EXPECT_EQ(orz->objective_defaults().aggregation, Aggregation::token_mean);
  EXPECT_FALSE(orz->objective_defaults().keep_mixed_groups);
}

TEST(ppo, explains_itself_with_the_values_of_the_run) {
  std::unique_ptr<Method> method = ppo();
  apply(*method, {{"lambda", 0.95, "test"}, {"critic.value_clip", 0.3, "test"}});
  std::string all;
  for (const Equation& equation : method->equations()) all += equation.where + ": " + equation.formula + "\n";
  EXPECT_NE(all.find("0.95 A_{t+1}"), std::string::npos) << all;
  EXPECT_NE(all.find("+-0.3"), std::string::npos) << all;
}

}  // namespace
}  // namespace ucas

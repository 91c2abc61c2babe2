// What KTAE promises, in words, and one group worked by hand.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "methods/apply.h"
#include "support/batches.h"

namespace ucas {
namespace {

using testing::make_batch;

struct TokenRow {
  int64_t group = 0;
  float reward = 0;
  std::vector<int32_t> token;
};

Batch batch_of(const std::vector<TokenRow>& rows, std::vector<int32_t> stop_ids = {}) {
  std::vector<testing::Row> plain;
  for (const TokenRow& row : rows) {
    std::vector<float> none(row.token.size());
    plain.push_back({row.group, row.reward, none, none});
  }
  Batch batch = make_batch(plain);
  batch.token.clear();
  for (const TokenRow& row : rows) batch.token.insert(batch.token.end(), row.token.begin(), row.token.end());
  batch.stop_ids = std::move(stop_ids);
  return batch;
}

struct KtaeShaped {
  std::vector<float> advantage, A, K;
  std::map<std::string, double> metrics;
};

KtaeShaped ktae_of(const Batch& batch, const std::string& preset = "released",
                   const std::vector<Setting>& settings = {}) {
  auto [advantage, recording] = ucas::compute_advantages("ktae", batch, preset, settings);
  KtaeShaped computed;
  computed.advantage = advantage;
  for (const Recording::Row& row : recording.rows) (row.name == "K" ? computed.K : computed.A) = row.values;
  computed.metrics.insert(recording.metrics.begin(), recording.metrics.end());
  return computed;
}

// Two right, two wrong. 1 is in all, 2 in right ones alone, 3 in wrong ones alone, 4 in one of each, 9 ends.
Batch four_token_rows() {
  return batch_of({{0, 1, {1, 2, 4, 9}}, {0, 1, {1, 2, 9}}, {0, -1, {1, 3, 4, 9}}, {0, -1, {1, 3, 9}}}, {9});
}

TEST(ktae_method, a_token_of_right_answers_gains_and_one_of_wrong_answers_loses_in_every_response) {
  KtaeShaped s = ktae_of(four_token_rows());
  EXPECT_GT(s.K[1], 0.99f);
  EXPECT_LT(s.K[8], -0.99f);
  KtaeShaped mixed =
      ktae_of(batch_of({{0, 1, {1, 2}}, {0, 1, {2, 2}}, {0, 1, {2}}, {0, -1, {3, 2}}, {0, -1, {3, 3, 3}}}));
  EXPECT_GT(mixed.K[1], 0);
  EXPECT_EQ(mixed.K[1], mixed.K[6]);  // the same K in a wrong response
  EXPECT_FLOAT_EQ(mixed.advantage[6], mixed.A[3] + mixed.K[6]);
}

TEST(ktae_method, a_token_that_all_responses_share_alike_is_worth_nothing) {
  KtaeShaped s = ktae_of(batch_of({{0, 1, {1, 2}}, {0, -1, {1, 3}}}));
  EXPECT_EQ(s.K[0], 0);
  EXPECT_EQ(s.advantage[0], s.A[0]);
}

TEST(ktae_method, one_group_by_hand) {
  // Token 4: a = b = c = d = 1 of 2 + 2, so p = 1 and F = 0; IG = 0; K = 0. Token 2: a = 2, b = c = 0, d = 2:
  // p = 1/6 + 1/6, F = exp(-2/3), IG = 1, TF = 0 among the wrong, so D > 3e4 and K = 1 at float32.
  KtaeShaped s = ktae_of(four_token_rows());
  EXPECT_EQ(s.K[2], 0);
  EXPECT_EQ(s.K[1], 1);
  // Without frequencies D = asin(1) - asin(0) = pi/2, and x = (F + IG)/2 pi/2.
  KtaeShaped shares = ktae_of(four_token_rows(), "released", {{"h3", 0.0, "h3", false}});
  double F = std::exp(-2.0 / 3), x = (F + 1) / 2 * std::acos(0.0);
  EXPECT_NEAR(shares.K[1], 2 / (1 + std::exp(-x)) - 1, 1e-7);
  EXPECT_NEAR(shares.K[8], -shares.K[1], 1e-7);
  // The paper's form: the one table has p = 1/6, no division by h1 + h2, range 1/2.
  KtaeShaped paper = ktae_of(four_token_rows(), "paper", {{"h3", 0.0, "h3", false}});
  x = (std::exp(-1.0 / 3) + 1) * std::acos(0.0);
  EXPECT_NEAR(paper.K[1], 1 / (1 + std::exp(-x)) - 0.5, 1e-7);
}

TEST(ktae_method, end_tokens_are_exempt_in_the_released_form_only) {
  // 9 ends one of two right responses and both wrong ones.
  std::vector<TokenRow> rows = {{0, 1, {1, 9}}, {0, 1, {1, 5}}, {0, -1, {2, 9}}, {0, -1, {2, 9}}};
  EXPECT_EQ(ktae_of(batch_of(rows, {9})).K[1], 0);
  EXPECT_LT(ktae_of(batch_of(rows)).K[1], 0);
  EXPECT_LT(ktae_of(batch_of(rows, {9}), "paper").K[1], 0);
  Setting named{"zero_tokens", std::vector<int64_t>{1}, "ids", false};
  EXPECT_EQ(ktae_of(batch_of(rows, {9}), "released", {named}).K[0], 0);
  EXPECT_LT(ktae_of(batch_of(rows, {9}), "released", {named}).K[1], 0);
  EXPECT_GT(ktae_of(batch_of(rows, {9}), "paper", {named}).K[0], 0);
}

TEST(ktae_method, without_both_right_and_wrong_responses_there_is_no_key_token) {
  for (const auto& rows : {std::vector<TokenRow>{{0, 1, {1, 2}}, {0, 1, {3}}},
                           {{0, 0.5f, {1, 2}}, {0, 1, {3}}},
                           {{0, -1, {1, 2}}, {0, 0, {3}}},
                           {{0, 1, {1, 2, 3}}}}) {
    KtaeShaped s = ktae_of(batch_of(rows));
    for (float K : s.K) EXPECT_EQ(K, 0);
  }
  for (float a : ktae_of(batch_of({{0, 0.7f, {1, 2}}, {0, 0.7f, {3}}})).advantage) EXPECT_EQ(a, 0);
}

TEST(ktae_method, empty_responses_count_as_responses_without_any_token) {
  KtaeShaped s = ktae_of(batch_of({{0, 1, {1, 2}}, {0, 1, {2}}, {0, -1, {}}, {0, -1, {}}}));
  for (float K : s.K) EXPECT_TRUE(std::isfinite(K));
  EXPECT_GT(s.K[1], 0.99f);
}

TEST(ktae_method, the_objective_is_dapos_with_another_upper_clip) {
  ObjectiveConfig objective = make_method("ktae")->objective_defaults();
  EXPECT_EQ(objective.clip_high, 0.24);
  EXPECT_EQ(objective.dual_clip, 10);
  EXPECT_TRUE(objective.keep_mixed_groups);
  std::unique_ptr<Method> method = make_method("ktae");
  EXPECT_EQ(method->row().presets.front(), "released");
  ucas::apply(*method, {{"h1", 0.0, "h1", false}, {"h2", 0.0, "h2", false}});
  EXPECT_ANY_THROW(method->validate());
}

TEST(ktae_method, metrics_say_how_much_changed) {
  KtaeShaped s = ktae_of(four_token_rows());
  double size = 0;
  for (float K : s.K) size += std::fabs(K) / 14;
  EXPECT_NEAR(s.metrics["ktae/key_abs_mean"], size, 1e-7);
  EXPECT_NEAR(s.metrics["ktae/saturated_share"], 4.0 / 14, 1e-12);
  EXPECT_NEAR(s.metrics["ktae/turned_share"], 0, 1e-12);
}

TEST(ktae_method, the_order_of_prompts_and_responses_never_changes_an_advantage) {
  EXPECT_TRUE(rc::check("permuting groups and rows permutes the advantages", [] {
    std::vector<std::vector<std::pair<int, TokenRow>>> groups;
    for (int g = *rc::gen::inRange(1, 4); g > 0; --g) {
      auto& group = groups.emplace_back();
      for (int i = *rc::gen::inRange(1, 7); i > 0; --i) {
        auto tokens = *rc::gen::container<std::vector<int32_t>>(rc::gen::inRange(0, 6));
        float reward = static_cast<float>(*rc::gen::inRange(-3, 4)) / 3;
        group.push_back({i, {static_cast<int64_t>(groups.size()), reward, tokens}});
      }
    }
    auto run = [](const auto& all) {
      std::vector<TokenRow> rows;
      std::vector<int> tags;
      for (const auto& group : all) {
        for (const auto& [tag, row] : group) {
          rows.push_back(row);
          tags.push_back(tag);
        }
      }
      Batch batch = batch_of(rows, {5});
      std::vector<float> advantage = ktae_of(batch).advantage;
      std::map<std::pair<int64_t, int>, std::vector<float>> keyed;
      for (size_t i = 0; i < rows.size(); ++i) {
        auto of_i = Batch::tokens(advantage, batch.responses[i]);
        keyed[{rows[i].group, tags[i]}] = std::vector<float>(of_i.begin(), of_i.end());
      }
      return keyed;
    };
    auto before = run(groups);
    std::reverse(groups.begin(), groups.end());
    for (auto& group : groups) std::reverse(group.begin(), group.end());
    RC_ASSERT(run(groups) == before);
  }));
}

}  // namespace
}  // namespace ucas

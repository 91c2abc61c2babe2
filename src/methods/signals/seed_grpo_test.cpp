// What SEED-GRPO promises, in words, and groups worked by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::Advantages;
using testing::text;

struct AnswerRow {
  float reward = 0;
  std::string answer;  // "" = unreadable
  float logprob = 0;   // of each token
  int32_t answer_class = -1;
  size_t length = 2;
};

Batch answers_of(const std::vector<AnswerRow>& rows) {
  std::vector<testing::Row> plain;
  for (const AnswerRow& row : rows) {
    std::vector<float> none(row.length);
    plain.push_back({0, row.reward, none, none});
  }
  Batch batch = testing::make_batch(plain);
  for (size_t i = 0; i < rows.size(); ++i) {
    Verdict& verdict = batch.responses[i].verdict;
    verdict.answer = rows[i].answer;
    verdict.answer_class = rows[i].answer_class;
    verdict.kind = rows[i].answer.empty() ? VerdictKind::unparseable
                   : rows[i].reward > 0   ? VerdictKind::equal
                                          : VerdictKind::unequal;
    batch.old_logprob.insert(batch.old_logprob.end(), rows[i].length, rows[i].logprob);
  }
  return batch;
}

Advantages seed_of(const Batch& batch, const std::vector<Setting>& settings = {}) {
  return testing::compute_advantages(batch, "seed_grpo", "", settings);
}

// Two agree, one differs, one cannot be read.
Batch four_answers() { return answers_of({{1, "3", -0.3f}, {1, "3", -0.4f}, {0, "5", -0.5f}, {0, "", -0.9f}}); }

TEST(seed_grpo_method, a_prompt_with_many_answers_counts_less) {
  Setting strong{"alpha", 0.5, "alpha", false};
  float torn = seed_of(answers_of({{1, "1"}, {0, "2"}, {0, "3"}, {0, "4"}}), {strong}).rows["scale"][0];
  float sure = seed_of(answers_of({{1, "1"}, {0, "2"}, {0, "2"}, {0, "2"}}), {strong}).rows["scale"][0];
  EXPECT_FLOAT_EQ(torn, 0.5f);  // SE = ln G: x = 1
  EXPECT_GT(sure, torn);
  EXPECT_LT(sure, 1.0f);
}

TEST(seed_grpo_method, one_answer_from_all_leaves_dr_grpo) {
  Advantages s = seed_of(answers_of({{1, "3"}, {0, "3"}}));
  EXPECT_EQ(s.advantage, (std::vector<float>{0.5f, 0.5f, -0.5f, -0.5f}));
  EXPECT_EQ(s.metrics["seed/entropy_mean"], 0);
  EXPECT_EQ(s.metrics["seed/scale_mean"], 1);
}

TEST(seed_grpo_method, counts_by_hand) {
  Advantages s = seed_of(four_answers());
  double SE = 1.5 * std::log(2.0), f = 1 - 0.02 * 0.75;  // shares 1/2, 1/4, 1/4
  EXPECT_NEAR(s.rows["SE"][2], SE, 1e-6);
  EXPECT_NEAR(s.rows["scale"][2], f, 1e-7);
  EXPECT_NEAR(s.advantage[0], 0.5 * f, 1e-7);
  EXPECT_NEAR(s.advantage[7], -0.5 * f, 1e-7);
  EXPECT_NEAR(s.metrics["seed/scale_mean"], f, 1e-12);
}

TEST(seed_grpo_method, the_scales_by_hand) {
  double x = 0.75;
  for (auto [name, f] : std::map<const char*, double>{{"linear", 1 - 0.02 * x},
                                                      {"exponential", std::exp(-0.02 * x)},
                                                      {"focal", std::pow(1 - x, 0.02)},
                                                      {"reciprocal", 1 / (1 + 0.02 * x)}}) {
    EXPECT_NEAR(seed_of(four_answers(), {text("f", name)}).rows["scale"][0], f, 1e-7) << name;
  }
}

TEST(seed_grpo_method, likelihoods_weigh_the_clusters) {
  double total = std::exp(-0.3) + std::exp(-0.4) + std::exp(-0.5) + std::exp(-0.9);
  std::vector<double> p = {(std::exp(-0.3) + std::exp(-0.4)) / total, std::exp(-0.5) / total, std::exp(-0.9) / total};
  double shannon = 0, mc = 0;
  for (double p_k : p) {
    shannon -= p_k * std::log(p_k);
    mc -= std::log(p_k) / 3;
  }
  EXPECT_NEAR(seed_of(four_answers(), {text("estimator", "shannon")}).rows["SE"][0], shannon, 1e-6);
  EXPECT_NEAR(seed_of(four_answers(), {text("estimator", "mc")}).rows["SE"][0], mc, 1e-6);
}

TEST(seed_grpo_method, the_monte_carlo_estimate_may_exceed_ln_g_and_no_scale_falls_below_zero) {
  Batch batch = answers_of({{1, "1", -0.01f}, {0, "2", -9}, {0, "3", -9}, {0, "4", -9}});
  for (const char* f : {"linear", "exponential", "focal", "reciprocal"}) {
    Advantages s = seed_of(batch, {text("estimator", "mc"), text("f", f), {"alpha", 5.0, "alpha", false}});
    EXPECT_GT(s.rows["SE"][0], std::log(4.0));
    EXPECT_GE(s.rows["scale"][0], 0);
    EXPECT_LT(s.rows["scale"][0], 0.2);
  }
}

TEST(seed_grpo_method, clusters_by_the_verifier_join_what_is_written_differently) {
  Batch batch = answers_of({{1, "0.5", 0, 0}, {1, "1/2", 0, 0}, {0, "2", 0, 1}, {0, "", 0, -1}});
  EXPECT_GT(seed_of(batch).rows["SE"][0], seed_of(batch, {text("clusters", "verifier")}).rows["SE"][0]);
  std::unique_ptr<Method> method = make_method("seed_grpo");
  EXPECT_FALSE(method->needs().answer_classes);
  ucas::apply(*method, {text("clusters", "verifier")});
  EXPECT_TRUE(method->needs().answer_classes);
}

TEST(seed_grpo_method, each_unreadable_answer_stands_alone) {
  Advantages s = seed_of(answers_of({{1, "3"}, {0, ""}, {0, ""}, {0, ""}}));
  EXPECT_NEAR(s.rows["SE"][0], std::log(4.0), 1e-6);
}

TEST(seed_grpo_method, degenerate_groups) {
  for (float a : seed_of(answers_of({{0.7f, "1"}, {0.7f, "2"}, {0.7f, "3"}})).advantage) EXPECT_EQ(a, 0);
  Advantages one = seed_of(answers_of({{1, "3"}}));
  EXPECT_EQ(one.advantage[0], 1);
  EXPECT_EQ(one.rows["scale"][0], 1);
  EXPECT_EQ(seed_of(answers_of({{1, "3"}}), {text("group_of_one", "zero")}).advantage[0], 0);
  for (const char* estimator : {"mc", "shannon", "count"}) {
    Advantages s = seed_of(answers_of({{1, "3", -1, -1, 2}, {0, "", 0, -1, 0}}), {text("estimator", estimator)});
    for (float a : s.advantage) EXPECT_TRUE(std::isfinite(a) && a > 0) << estimator;
  }
}

TEST(seed_grpo_method, the_order_of_responses_never_changes_an_advantage) {
  std::vector<AnswerRow> rows = {{1, "3", -0.31f},   {0.3f, "3", -0.47f}, {0, "5", -0.53f},
                                 {0.9f, "", -0.97f}, {0.7f, "5", -1.3f},  {0.1f, "8", -0.11f}};
  for (const char* estimator : {"mc", "shannon", "count"}) {
    Advantages before = seed_of(answers_of(rows), {text("estimator", estimator)});
    std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
    while (std::next_permutation(order.begin(), order.end())) {
      std::vector<AnswerRow> permuted;
      for (size_t i : order) permuted.push_back(rows[i]);
      Advantages after = seed_of(answers_of(permuted), {text("estimator", estimator)});
      for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(after.advantage[2 * i], before.advantage[2 * order[i]]);
    }
  }
}

}  // namespace
}  // namespace ucas

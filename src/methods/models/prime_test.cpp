#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

struct PrimeRow {
  std::vector<float> q;
  bool right = false;
  int64_t group = 0;
};

Batch prime_batch(const std::vector<PrimeRow>& rows) {
  std::vector<testing::Row> packed;
  for (const PrimeRow& row : rows) packed.push_back({row.group, row.right ? 1.0f : 0.0f, row.q, row.q});
  Batch batch = testing::make_batch(packed);
  for (size_t i = 0; i < rows.size(); ++i) {
    batch.signal("prm_logratio").insert(batch.signal("prm_logratio").end(), rows[i].q.begin(), rows[i].q.end());
    batch.responses[i].verdict.kind = rows[i].right ? VerdictKind::equal : VerdictKind::unequal;
  }
  return batch;
}

struct Result {
  std::vector<float> A;
  Recording recording;
  const std::vector<float>& row(const std::string& name) const {
    for (const Recording::Row& row : recording.rows) {
      if (row.name == name) return row.values;
    }
    throw std::out_of_range(name);
  }
};

Result run(const std::vector<PrimeRow>& rows, const std::vector<std::pair<std::string, std::string>>& options = {},
           const std::string& preset = "verl") {
  std::unique_ptr<Method> method = make_method("prime", preset);
  std::vector<Setting> settings;
  for (const auto& [key, value] : options) settings.push_back({key, value, "test", true});
  ucas::apply(*method, settings);
  Batch batch = prime_batch(rows);
  Result result;
  result.A.resize(batch.token.size());
  method->advantages(batch, result.A, result.recording);
  return result;
}

// The last token earns nothing from the reward model, so only the verdict is there.
const std::vector<PrimeRow> kPair = {{{0.4f, 9.0f}, true}, {{-0.2f, 7.0f}, false}};

TEST(prime, worked_by_hand) {
  Result result = run(kPair, {{"prm.beta", "0.5"}});
  // beta q = 0.2, 0 | -0.1, 0; normaliser 0.2 + 1e-6; row means 0.5 and -0.25 (times 1 - 5e-6).
  double s = 0.2 / (0.2 + 1e-6), u00 = 2 * s - 0.25 * s, u01 = -0.25 * s, u10 = -1 * s - 0.25 * s, u11 = -0.25 * s;
  std::vector<double> R = {5 * (u00 + u01) + 5, 5 * u01 + 5, 5 * (u10 + u11) - 5, 5 * u11 - 5};
  double mean = std::accumulate(R.begin(), R.end(), 0.0) / 4, squares = 0;
  for (double x : R) squares += (x - mean) * (x - mean);
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_NEAR(result.row("R")[t], R[t], 1e-5) << t;
    EXPECT_NEAR(result.A[t], (R[t] - mean) / std::sqrt(squares / 3 + 1e-8), 1e-5) << t;
  }
  EXPECT_EQ(result.row("v"), (std::vector<float>{1, -1}));
}

TEST(prime, the_authors_reward_every_token_without_beta) {
  Result verl = run(kPair), authors = run(kPair, {}, "authors");
  EXPECT_EQ(verl.row("r")[1], 0);
  EXPECT_NEAR(authors.row("r")[1], 9.0 / (9.4 + 1e-6), 1e-6);
}

TEST(prime, a_reward_model_that_knows_nothing_leaves_the_verdict) {
  Result result = run({{{0, 0, 0}, true}, {{0, 0}, false}, {{0}, false}});
  for (float r : result.row("r")) EXPECT_EQ(r, 0);
  for (size_t t = 0; t < 3; ++t) EXPECT_EQ(result.A[t], result.A[0]);
  EXPECT_GT(result.A[0], 0);
  EXPECT_LT(result.A[3], 0);
  EXPECT_EQ(result.A[3], result.A[5]);
}

TEST(prime, equal_verdicts_and_no_opinion_teach_nothing) {
  for (bool right : {false, true}) {
    Result result = run({{{0, 0}, right}, {{0}, right}, {{0, 0, 0}, right}});
    for (float A : result.A) EXPECT_EQ(A, 0.0f);
  }
}

TEST(prime, one_token_earns_nothing_from_the_reward_model_of_verl) {
  Result result = run({{{0.7f}, true}, {{0.3f, 0.1f}, false}});
  EXPECT_EQ(result.row("r")[0], 0);
  EXPECT_GT(run({{{0.7f}, true}, {{0.3f, 0.1f}, false}}, {}, "authors").row("r")[0], 0);
}

TEST(prime, a_lone_response_keeps_its_rewards) {
  Result result = run({{{0.3f, 0.1f}, true}}, {{"coef_gt", "2"}, {"coef_prm", "1"}});
  EXPECT_NEAR(result.row("R")[0], 2 + 0.015 / (0.015 + 1e-6), 1e-5);
  EXPECT_EQ(result.row("R")[1], 2);
}

TEST(prime, an_empty_response_counts_in_the_verdicts_alone) {
  std::vector<PrimeRow> rows = {{{0.4f, 0.1f}, true}, {{}, true}, {{-0.2f, 0.3f}, false}};
  Result with = run(rows);
  Result without = run({rows[0], rows[2]});
  EXPECT_FLOAT_EQ(with.row("v")[0], 0.5f);  // 1 - mean(1, 0)
  EXPECT_FLOAT_EQ(without.row("v")[0], 1.0f);
  std::vector<std::pair<std::string, std::string>> prm_only = {{"coef_gt", "0"}};
  EXPECT_EQ(run(rows, prm_only).row("R"), run({rows[0], rows[2]}, prm_only).row("R"));
}

TEST(prime, the_order_of_rows_changes_no_bit) {
  std::vector<PrimeRow> rows;
  for (int i = 0; i < 12; ++i) {
    PrimeRow row{{}, i % 3 == 0, i / 6};
    for (int t = 0; t <= (i * 5) % 7; ++t) row.q.push_back(0.1f * static_cast<float>((i * 7 + t * 3) % 11) - 0.37f);
    rows.push_back(row);
  }
  for (const char* preset : {"verl", "authors"}) {
    Result straight = run(rows, {}, preset);
    std::vector<PrimeRow> turned(rows.rbegin(), rows.rend());
    Result reversed = run(turned, {}, preset);
    Batch a = prime_batch(rows), b = prime_batch(turned);
    for (size_t i = 0; i < rows.size(); ++i) {
      auto one = Batch::tokens(straight.A, a.responses[i]);
      auto two = Batch::tokens(reversed.A, b.responses[rows.size() - 1 - i]);
      EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin(), two.end())) << preset << " row " << i;
    }
  }
}

TEST(prime, presets_differ_where_the_codes_do) {
  std::unique_ptr<Method> verl = make_method("prime"), authors = make_method("prime", "authors");
  EXPECT_EQ(verl->needs().prm->order, PrmOrder::before);
  EXPECT_EQ(authors->needs().prm->order, PrmOrder::after);
  EXPECT_EQ(verl->objective_defaults().keep_order, KeepOrder::prefer);
  EXPECT_EQ(authors->objective_defaults().keep_order, KeepOrder::refill);
  EXPECT_TRUE(verl->objective_defaults().keep_untruncated);
  EXPECT_DOUBLE_EQ(verl->needs().prm->optimizer.lr, 1e-6);
  EXPECT_DOUBLE_EQ(verl->needs().prm->optimizer.grad_clip, 10);
  EXPECT_DOUBLE_EQ(verl->needs().prm->optimizer.weight_decay, 0);
}

}  // namespace
}  // namespace ucas

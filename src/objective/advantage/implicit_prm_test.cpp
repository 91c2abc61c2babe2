#include "objective/advantage/reward_terms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/batches.h"
#include "support/implicit_prm_loss.h"

namespace ucas {
namespace {

Batch batch_of(const std::vector<std::vector<float>>& q, const std::vector<bool>& right) {
  std::vector<testing::Row> rows;
  for (const auto& row : q) rows.push_back({0, 0, row, row});
  Batch batch = testing::make_batch(rows);
  for (const auto& row : q)
    batch.signal("prm_logratio").insert(batch.signal("prm_logratio").end(), row.begin(), row.end());
  for (size_t i = 0; i < right.size(); ++i) {
    batch.responses[i].verdict.kind = right[i] ? VerdictKind::equal : VerdictKind::unequal;
  }
  return batch;
}

TEST(implicit_prm, an_undecided_model_loses_ln_2_and_leans_towards_the_verdict) {
  PrmRow right = implicit_prm_row(0, true, 0.05), wrong = implicit_prm_row(0, false, 0.05);
  EXPECT_DOUBLE_EQ(right.loss, std::log(2.0));
  EXPECT_DOUBLE_EQ(right.probability, 0.5);
  EXPECT_DOUBLE_EQ(right.d_token, -0.025);
  EXPECT_DOUBLE_EQ(wrong.d_token, 0.025);
  EXPECT_FALSE(right.agrees);  // 0.5 is not above 0.5: an undecided model calls everything wrong
  EXPECT_TRUE(wrong.agrees);
}

TEST(implicit_prm, the_gradient_is_that_of_the_loss) {
  for (double s : {-40.0, -3.0, 0.0, 0.4, 25.0}) {
    for (bool right : {false, true}) {
      double h = 1e-5, beta = 0.3;
      double slope = (implicit_prm_row(s + h, right, beta).loss - implicit_prm_row(s - h, right, beta).loss) / (2 * h);
      EXPECT_NEAR(implicit_prm_row(s, right, beta).d_token, slope, 1e-9) << s;
    }
  }
}

TEST(implicit_prm, extreme_log_ratios_stay_finite) {
  EXPECT_DOUBLE_EQ(implicit_prm_row(1e6, false, 1).loss, 1e6);
  EXPECT_EQ(implicit_prm_row(1e6, true, 1).loss, 0);
  EXPECT_DOUBLE_EQ(implicit_prm_row(-1e6, true, 1).loss, 1e6);
  EXPECT_EQ(implicit_prm_row(-1e6, true, 1).d_token, -1);
}

TEST(implicit_prm, the_loss_is_a_mean_over_responses_that_have_tokens) {
  Batch batch = batch_of({{2, 1}, {}, {-4}}, {true, true, true});
  PrmLoss loss = testing::implicit_prm_loss(batch, 0.5);
  EXPECT_NEAR(loss.loss, (std::log1p(std::exp(-1.5)) + std::log1p(std::exp(2.0))) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(loss.accuracy, 0.5);
  EXPECT_EQ(loss.d_token[1], 0);
  EXPECT_NEAR(loss.d_token[0], 0.5 * (1 / (1 + std::exp(-1.5)) - 1) / 2, 1e-12);
  EXPECT_EQ(testing::implicit_prm_loss(batch_of({{}}, {true}), 0.5).loss, 0);
}

}  // namespace
}  // namespace ucas

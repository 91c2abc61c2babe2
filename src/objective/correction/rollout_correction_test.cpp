#include "objective/correction/rollout_correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "methods/registry.h"
#include "support/batches.h"

namespace ucas {
namespace {

using testing::LossCase;
using testing::run_objective;

// Two responses; the sampler gave the second token of the first a quarter of the trainer's probability.
LossCase two() {
  LossCase mini;
  mini.add({-1, -1}, {-1, -1}, {1, 1});
  mini.add({-1, -1, -1, -1}, {-1, -1, -1, -1}, {-1, -1, -1, -1});
  mini.rollout_logprob[1] -= std::log(4.0f);
  mini.rollout_logprob[3] += std::log(1.5f);
  return mini;
}

RolloutCorrection correct(const LossCase& mini, const ObjectiveConfig& objective) {
  return rollout_correction(objective, mini.sequences, mini.old_logprob, mini.rollout_logprob);
}

void expect_floats_near(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST(mismatch, weights_are_cut_per_token_or_per_response) {
  ObjectiveConfig objective;
  EXPECT_TRUE(correct(two(), objective).weight.empty());
  objective.tis = Tis::token;
  float w = 1 / 1.5f;
  RolloutCorrection by_token = correct(two(), objective);
  expect_floats_near(by_token.weight, {1, 2, 1, w, 1, 1});
  EXPECT_EQ(by_token.capped, (std::vector<uint8_t>{0, 1, 0, 0, 0, 0}));
  objective.tis = Tis::sequence;
  expect_floats_near(correct(two(), objective).weight, {2, 2, w, w, w, w});
  objective.tis = Tis::sequence_mask;
  expect_floats_near(correct(two(), objective).weight, {0, 0, w, w, w, w});
  objective.tis_cap = 5;
  expect_floats_near(correct(two(), objective).weight, {4, 4, w, w, w, w});
}

TEST(mismatch, a_weight_scales_loss_and_gradient_and_leaves_the_denominator_alone) {
  ObjectiveConfig objective;
  objective.entropy_coeff = 0.5;
  auto method = make_method("dapo");
  auto plain = run_objective(*method, objective, two(), 0);
  objective.tis = Tis::token;
  for (size_t micro : {0, 1}) {
    auto weighted = run_objective(*method, objective, two(), micro);
    std::vector<float> w = {1, 2, 1, 1 / 1.5f, 1, 1};
    for (size_t t = 0; t < w.size(); ++t) EXPECT_NEAR(weighted.d_logprob[t], w[t] * plain.d_logprob[t], 1e-6);
    EXPECT_EQ(weighted.d_entropy, plain.d_entropy);  // the bonus is no matter of who sampled
  }
}

TEST(mismatch, each_mask_leaves_out_what_its_bound_says) {
  auto rejected = [&](Reject reject, double low, double high) {
    ObjectiveConfig objective;
    objective.reject = reject;
    objective.reject_low = low;
    objective.reject_high = high;
    return correct(two(), objective).rejected;
  };
  using Mask = std::vector<uint8_t>;
  EXPECT_EQ(rejected(Reject::token_ratio, 0.5, 2), (Mask{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(rejected(Reject::token_ratio, 0.7, 2), (Mask{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(rejected(Reject::sequence_ratio, 0.7, 3), (Mask{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(rejected(Reject::sequence_ratio, 0.5, 3), (Mask{1, 1, 0, 0, 0, 0}));
  // The geometric means are 4^(1/2) = 2 and 1.5^(-1/4) = 0.904.
  EXPECT_EQ(rejected(Reject::geometric_ratio, 0.9, 2.01), (Mask{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(rejected(Reject::geometric_ratio, 0.91, 1.99), (Mask{1, 1, 1, 1, 1, 1}));
  // k3 = r - 1 - ln r: 1.6137 and 0.0721.
  EXPECT_EQ(rejected(Reject::token_k3, 0.5, 1.62), (Mask{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(rejected(Reject::token_k3, 0.5, 0.07), (Mask{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(rejected(Reject::sequence_k3, 0.5, 0.8), (Mask{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(rejected(Reject::sequence_k3, 0.5, 0.81), (Mask{0, 0, 0, 0, 0, 0}));
}

TEST(mismatch, for_every_method_a_rejected_response_is_as_if_it_were_not_there) {
  LossCase mini = two(), without = two().slice(1, 1);
  ObjectiveConfig reject;
  reject.reject = Reject::sequence_ratio;
  for (const MethodRow& row : method_rows()) {
    auto method = row.make();
    ObjectiveConfig objective = method->objective_defaults();
    objective.entropy_coeff = 0.1;
    auto alone = run_objective(*method, objective, without, 0, 4);
    objective.reject = reject.reject;
    auto masked = run_objective(*method, objective, mini, 0, 4);
    double factor = objective.aggregation == Aggregation::row_mean_token_sum_norm ? 0.5 : 1;  // Oat counts all rows
    for (size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(masked.d_logprob[t], 0.0f) << row.name;
      EXPECT_EQ(masked.d_entropy[t], 0.0f) << row.name;
    }
    for (size_t t = 0; t < 4; ++t) {
      EXPECT_NEAR(masked.d_logprob[t + 2], factor * alone.d_logprob[t], 1e-6) << row.name;
      EXPECT_NEAR(masked.d_entropy[t + 2], factor * alone.d_entropy[t], 1e-6) << row.name;
    }
  }
}

TEST(mismatch, a_sequence_ratio_is_taken_over_the_tokens_that_are_left) {
  LossCase mini;
  mini.add({-1, -1, -1}, {-1.1f, -3, -1}, {-1, -1, -1});  // the second token's ratio is e^2
  mini.rollout_logprob[1] = -9;
  ObjectiveConfig objective = make_method("gspo")->objective_defaults();
  objective.reject = Reject::token_ratio;
  auto result = run_objective(*make_method("gspo"), objective, mini, 0);
  EXPECT_NEAR(result.d_logprob[0], 0.5 * std::exp(0.05), 1e-6);
  EXPECT_EQ(result.d_logprob[1], 0.0f);
}

TEST(mismatch, nothing_is_done_where_sampler_and_trainer_agree) {
  LossCase mini;
  mini.add({-1, -2}, {-1.2f, -1.9f}, {1, 1});
  mini.add({-3}, {-3.5f}, {-1});
  auto method = make_method("dapo");
  auto plain = run_objective(*method, {}, mini, 0);
  for (Tis tis : {Tis::token, Tis::sequence, Tis::sequence_mask}) {
    for (Reject reject : {Reject::token_ratio, Reject::sequence_ratio, Reject::geometric_ratio, Reject::token_k3,
                          Reject::sequence_k3}) {
      ObjectiveConfig objective;
      objective.tis = tis;
      objective.reject = reject;
      EXPECT_EQ(run_objective(*method, objective, mini, 0).d_logprob, plain.d_logprob);
    }
  }
}

TEST(mismatch, a_nan_is_not_hidden) {
  LossCase mini = two();
  mini.rollout_logprob[0] = std::numeric_limits<float>::quiet_NaN();
  ObjectiveConfig objective;
  objective.tis = Tis::token;
  objective.reject = Reject::token_ratio;
  EXPECT_TRUE(std::isnan(run_objective(*make_method("dapo"), objective, mini, 0).d_logprob[0]));
}

TEST(mismatch, what_it_did_is_logged) {
  Batch batch = testing::make_batch({{0, 1, {1, 1}, {1, 1}}, {0, 0, {1, 1, 1, 1}, {1, 1, 1, 1}}});
  LossCase mini = two();
  batch.old_logprob = mini.old_logprob;
  batch.rollout_logprob = mini.rollout_logprob;
  ObjectiveConfig objective;
  EXPECT_TRUE(correction_metrics(objective, batch).empty());
  objective.tis = Tis::token;
  objective.reject = Reject::token_ratio;
  objective.reject_low = 0.7;
  objective.reject_high = 10;
  auto metrics = correction_metrics(objective, batch);  // the token of ratio 1 / 1.5 is out, one of five is cut
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_EQ(metrics[0].first, "rollout/tis_weight_mean");
  EXPECT_NEAR(metrics[0].second, 6.0 / 5, 1e-6);
  EXPECT_EQ(metrics[1].first, "rollout/tis_clipped_share");
  EXPECT_NEAR(metrics[1].second, 1.0 / 5, 1e-12);
  EXPECT_EQ(metrics[2].first, "rollout/rejected_share");
  EXPECT_NEAR(metrics[2].second, 1.0 / 6, 1e-12);
}

TEST(mismatch, bounds_that_reject_everything_are_refused) {
  ObjectiveConfig objective;
  objective.reject = Reject::token_ratio;
  objective.reject_high = 0.5;
  EXPECT_THROW(objective.validate(), Error);
  objective.reject = Reject::token_k3;
  EXPECT_NO_THROW(objective.validate());
  objective.reject_high = 0;
  EXPECT_THROW(objective.validate(), Error);
}

}  // namespace
}  // namespace ucas

#include "objective/loss/rollout_correction.h"

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

TEST(mismatch, nothing_is_done_where_sampler_and_trainer_agree) {
  LossCase mini;
  mini.add({-1, -2}, {-1.2f, -1.9f}, {1, 1});
  mini.add({-3}, {-3.5f}, {-1});
  auto method = make_method("dapo");
  auto plain = run_objective(*method, {}, mini, 0);
  for (Tis tis : {Tis::token, Tis::sequence, Tis::sequence_mask}) {
    ObjectiveConfig objective;
    objective.tis = tis;
    EXPECT_EQ(run_objective(*method, objective, mini, 0).d_logprob, plain.d_logprob);
  }
}

TEST(mismatch, a_nan_is_not_hidden) {
  LossCase mini = two();
  mini.rollout_logprob[0] = std::numeric_limits<float>::quiet_NaN();
  ObjectiveConfig objective;
  objective.tis = Tis::token;
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
  auto metrics = correction_metrics(objective, batch);  // one of six is cut at 2, one weighs 1 / 1.5
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].first, "rollout/tis_weight_mean");
  EXPECT_NEAR(metrics[0].second, (4 + 2 + 1 / 1.5) / 6, 1e-6);
  EXPECT_EQ(metrics[1].first, "rollout/tis_clipped_share");
  EXPECT_NEAR(metrics[1].second, 1.0 / 6, 1e-12);
}

}  // namespace
}  // namespace ucas

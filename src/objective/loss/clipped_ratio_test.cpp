#include "objective/loss/clipped_ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/batches.h"

namespace ucas {
namespace {

struct Token {
  float loss, derivative;
  uint8_t clipped;
};

Token one(float lp, float old, float A, const ObjectiveConfig& objective) {
  testing::LossCase single;
  single.add({lp}, {old}, {A});
  LossInput in = single.input();
  in.objective = &objective;
  LossBuffer buffer;
  LossOutput out = buffer.view(1);
  clipped_ratio_loss(in, out);
  return {out.loss[0], out.d_logprob[0], out.clipped[0]};
}

ObjectiveConfig dapo() {
  ObjectiveConfig objective;
  objective.clip_high = 0.28;
  objective.dual_clip = 10;
  return objective;
}

TEST(clipped_ratio, the_first_update_is_the_plain_policy_gradient) {
  for (float A : {1.5f, -0.75f}) {
    Token token = one(-1.25f, -1.25f, A, dapo());
    EXPECT_EQ(token.loss, -A);
    EXPECT_EQ(token.derivative, -A);
    EXPECT_EQ(token.clipped, 0);
  }
}

TEST(clipped_ratio, a_token_of_advantage_zero_has_no_loss_and_no_gradient) {
  for (float lp : {0.0f, -1.0f, -100.0f}) {
    Token token = one(lp, -3.0f, 0.0f, dapo());
    EXPECT_EQ(token.loss, 0.0f);
    EXPECT_EQ(token.derivative, 0.0f);
    EXPECT_FALSE(std::signbit(token.loss));
  }
}

TEST(clipped_ratio, a_right_token_may_rise_to_the_upper_bound_and_no_further) {
  EXPECT_EQ(one(std::log(1.27f), 0, 1, dapo()).clipped, 0);
  Token above = one(std::log(1.29f), 0, 1, dapo());
  EXPECT_FLOAT_EQ(above.loss, -1.28f);
  EXPECT_EQ(above.derivative, 0.0f);
  EXPECT_EQ(above.clipped, 1);
  // Falling is never clipped for a right token: it must be able to come back.
  EXPECT_FLOAT_EQ(one(std::log(0.1f), 0, 1, dapo()).derivative, -0.1f);
}

TEST(clipped_ratio, a_wrong_token_may_fall_to_the_lower_bound_and_the_dual_clip_bounds_its_loss) {
  EXPECT_EQ(one(std::log(0.79f), 0, -1, dapo()).clipped, 1);
  EXPECT_FLOAT_EQ(one(std::log(5.0f), 0, -1, dapo()).derivative, 5.0f);
  Token exploded = one(std::log(50.0f), 0, -1, dapo());
  EXPECT_FLOAT_EQ(exploded.loss, 10.0f);
  EXPECT_EQ(exploded.derivative, 0.0f);
  EXPECT_EQ(exploded.clipped, 2);
  ObjectiveConfig off = dapo();
  off.dual_clip = 0;
  EXPECT_FLOAT_EQ(one(std::log(50.0f), 0, -1, off).loss, 50.0f);
}

TEST(clipped_ratio, extreme_log_probabilities_stay_finite) {
  ObjectiveConfig off = dapo();
  off.dual_clip = 0;
  for (float A : {1.0f, -1.0f}) {
    for (float lp : {0.0f, -500.0f}) {
      Token token = one(lp, lp == 0 ? -500.0f : 0.0f, A, off);
      EXPECT_TRUE(std::isfinite(token.loss));
      EXPECT_EQ(token.derivative, 0.0f);  // the log ratio is held at 20
    }
  }
}

TEST(clipped_ratio, a_nan_is_not_hidden) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  for (float A : {1.0f, -1.0f}) {
    EXPECT_TRUE(std::isnan(one(nan, -1, A, dapo()).loss));
    EXPECT_TRUE(std::isnan(one(nan, -1, A, dapo()).derivative));
  }
  EXPECT_TRUE(std::isnan(one(-1, -1, nan, dapo()).loss));
}

}  // namespace
}  // namespace ucas

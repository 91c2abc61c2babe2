#include "objective/loss/value_loss.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace ucas {
namespace {

TEST(value_loss, agrees_with_the_released_code) {
  std::vector<float> V = {0.5f, 0.9f, 0.75f, 0.2f, 0.25f, 0.1f, 0.25f, 0.05f, 0.85f};
  std::vector<float> old = {0.4f, 0.5f, 0.7f, 0.6f, 0.3f, 0.5f, 0.2f, 0.1f, 0.8f};
  std::vector<float> R = {1, 1, 1, 0, 0, 0, 0, 0, 1};
  std::vector<float> d(V.size());
  ValueLossMetrics m;
  value_loss(V, old, R, 0.2, 9, d, m);
  EXPECT_NEAR(m.vf_loss, 0.044583, 1e-6);
  EXPECT_NEAR(m.vf_clipfrac, 3.0 / 9, 1e-12);
  EXPECT_NEAR(m.vpred_mean, 3.85 / 9, 1e-7);
}

TEST(value_loss, a_value_that_ran_ahead_of_the_old_one_gets_no_gradient) {
  ValueTerm ahead = value_term(0.9, 0.5, 1.0, 0.2);  // moved 0.4 towards R, 0.2 allowed
  EXPECT_TRUE(ahead.clipped);
  EXPECT_EQ(ahead.d_value, 0);
  EXPECT_NEAR(ahead.loss, 0.5 * 0.3 * 0.3, 1e-12);
  ValueTerm astray = value_term(0.1, 0.5, 1.0, 0.2);  // moved the wrong way: pulled back in full
  EXPECT_FALSE(astray.clipped);
  EXPECT_NEAR(astray.d_value, -0.9, 1e-12);
  EXPECT_EQ(value_term(0.9, 0.5, 1.0, 0).d_value, 0.9 - 1.0);  // no clipping
}

TEST(value_loss, the_first_update_is_plain_regression) {
  for (double V : {-1.0, 0.0, 0.3, 1.0}) {
    ValueTerm term = value_term(V, V, 1.0, 0.2);
    EXPECT_FALSE(term.clipped);
    EXPECT_EQ(term.d_value, V - 1.0);
  }
}

TEST(value_loss, the_derivative_is_that_of_the_loss) {
  Rng rng(3, 1);
  int clipped = 0;
  for (int i = 0; i < 2000; ++i) {
    double V = rng.normal(), old = V + 0.5 * rng.normal(), R = rng.normal(), eps = 0.3, h = 1e-6;
    ValueTerm here = value_term(V, old, R, eps), up = value_term(V + h, old, R, eps),
              down = value_term(V - h, old, R, eps);
    if (up.clipped != here.clipped || down.clipped != here.clipped) continue;  // the kink itself
    clipped += here.clipped;
    EXPECT_NEAR((up.loss - down.loss) / (2 * h), here.d_value, 1e-7);
  }
  EXPECT_GT(clipped, 100);
}

TEST(value_loss, pieces_add_up_to_the_whole) {
  Rng rng(3, 2);
  std::vector<float> V(20), old(20), R(20), whole(20), parts(20);
  for (size_t t = 0; t < 20; ++t) {
    V[t] = static_cast<float>(rng.normal());
    old[t] = V[t] + static_cast<float>(0.3 * rng.normal());
    R[t] = static_cast<float>(rng.below(2));
  }
  ValueLossMetrics one, many;
  value_loss(V, old, R, 0.2, 20, whole, one);
  for (size_t at : {0, 3, 4, 11}) {
    size_t n = at == 0 ? 3 : at == 3 ? 1 : at == 4 ? 7 : 9;
    auto cut = [&](auto& x) { return std::span(x).subspan(at, n); };
    value_loss(cut(V), cut(old), cut(R), 0.2, 20, cut(parts), many);
  }
  EXPECT_EQ(whole, parts);
  EXPECT_NEAR(one.vf_loss, many.vf_loss, 1e-12);
  EXPECT_NEAR(one.vf_clipfrac, many.vf_clipfrac, 1e-12);
  EXPECT_NEAR(one.vpred_mean, many.vpred_mean, 1e-12);
}

TEST(value_loss, explained_variance_tells_a_good_critic_from_a_constant_one) {
  std::vector<float> R = {1, 0, 1, 0, 1, 0}, constant(6, 0.5f), inverted = {0, 1, 0, 1, 0, 1};
  EXPECT_NEAR(explained_variance(R, R), 1, 1e-9);
  EXPECT_NEAR(explained_variance(constant, R), 0, 1e-4);
  EXPECT_NEAR(explained_variance(inverted, R), -3, 1e-3);
  EXPECT_EQ(explained_variance({}, {}), 0);
}

}  // namespace
}  // namespace ucas

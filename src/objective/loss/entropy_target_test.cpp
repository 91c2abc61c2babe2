#include "objective/loss/kl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"

namespace ucas {
namespace {

ObjectiveConfig aiming_at(double target) {
  ObjectiveConfig config;
  config.entropy_target = target;
  return config;
}

TEST(entropy_target, the_bonus_grows_below_the_target_and_rests_above_it) {
  const ObjectiveConfig config = aiming_at(0.5);
  EXPECT_EQ(entropy_bonus(config, 0.75, 0.4).now, 0.75);
  EXPECT_EQ(entropy_bonus(config, 0.75, 0.4).next, 0.75 + kEntropyStep);
  EXPECT_EQ(entropy_bonus(config, 0.75, 0.6).now, 0);
  EXPECT_EQ(entropy_bonus(config, 0.75, 0.6).next, 0.75 - kEntropyStep);
  EXPECT_EQ(entropy_bonus(config, 0.75, 0.5).now, 0.75);  // at the target it acts and falls
  EXPECT_EQ(entropy_bonus(config, 0.75, 0.5).next, 0.75 - kEntropyStep);
}

TEST(entropy_target, the_bonus_never_turns_into_a_penalty) {
  EXPECT_EQ(entropy_bonus(aiming_at(0.5), 0.001, 2).next, 0);
  EXPECT_EQ(entropy_bonus(aiming_at(0.5), 0, 2).next, 0);
}

// A policy whose entropy is what the bonus of the step before made of it: e falls by 0.1 a step, and alpha raises it.
TEST(entropy_target, it_holds_a_falling_entropy_near_the_target) {
  const ObjectiveConfig config = aiming_at(1);
  double c = 0, entropy = 2, low = 2;
  for (int step = 0; step < 400; ++step) {
    const EntropyBonus bonus = entropy_bonus(config, c, entropy);
    entropy = std::max(0.0, entropy - 0.1 + bonus.now);
    if (step > 300) low = std::min(low, entropy);
    c = bonus.next;
  }
  EXPECT_GT(low, 0.5);
  EXPECT_LT(low, 1);
}

TEST(entropy_target, an_entropy_that_is_no_number_moves_nothing) {
  EXPECT_EQ(entropy_bonus(aiming_at(0.5), 0.75, std::nan("")).next, 0.75);
  EXPECT_EQ(entropy_bonus(aiming_at(0.5), 0.75, std::nan("")).now, 0);
}

}  // namespace
}  // namespace ucas

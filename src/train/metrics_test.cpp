#include "train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ucas {
namespace {

TEST(step_metrics, no_share_of_the_machine_is_above_one) {
  StepMetrics m;
  m.set("perf/mfu/rollout", 2.4);
  m.set("perf/mfu/actor", 0.8);
  m.set("perf/mbu/rollout", 1.5);
  m.set("critic/score/mean", 3);
  EXPECT_TRUE(has_share_above_one(m));
  rescale_shares(m, 4, 1);  // measured again: four times the products, no quicker memory
  EXPECT_DOUBLE_EQ(m.get("perf/mfu/rollout"), 0.6);
  EXPECT_DOUBLE_EQ(m.get("perf/mfu/actor"), 0.2);
  EXPECT_TRUE(std::isnan(m.get("perf/mbu/rollout"))) << "left out";
  EXPECT_DOUBLE_EQ(m.get("critic/score/mean"), 3);
  EXPECT_FALSE(has_share_above_one(m));
}

}  // namespace
}  // namespace ucas

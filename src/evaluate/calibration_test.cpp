#include "evaluate/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ucas {
namespace {

TEST(evaluate_calibration, a_model_that_is_as_right_as_it_states_has_no_calibration_error) {
  std::vector<Judged> responses;
  for (int i = 0; i < 10; ++i) responses.push_back({i < 7, std::log(0.7), 0});
  for (int i = 0; i < 10; ++i) responses.push_back({i < 3, std::log(0.3), 0});
  const Calibration c = calibrate(responses);
  EXPECT_NEAR(c.ece, 0, 1e-12);
  EXPECT_NEAR(c.auroc_logprob, (7 * 7 + 0.5 * (7 * 3 + 3 * 7)) / 100.0, 1e-12);  // wins + half the ties, of 10 x 10
  ASSERT_EQ(c.bins.size(), 10u);
  EXPECT_EQ(c.bins[2].count, 10);
  EXPECT_NEAR(c.bins[2].right, 0.3, 1e-12);
}

TEST(evaluate_calibration, each_of_the_two_scores_ranks_on_its_own) {
  const std::vector<Judged> responses = {{true, -0.1, -2}, {true, -0.2, -1}, {false, -0.9, 3}, {false, -0.8, 4}};
  const Calibration c = calibrate(responses);
  EXPECT_EQ(c.auroc_logprob, 1);
  EXPECT_EQ(c.auroc_confidence, 0);
}

TEST(evaluate_calibration, a_certain_model_that_is_always_wrong_has_the_greatest_error_and_no_ranking) {
  const std::vector<Judged> responses(5, Judged{false, 0, 1});
  const Calibration c = calibrate(responses);
  EXPECT_EQ(c.ece, 1);
  EXPECT_TRUE(std::isnan(c.auroc_logprob));
  EXPECT_TRUE(std::isnan(c.auroc_confidence));
}

TEST(evaluate_calibration, numbers_that_were_not_measured_are_left_out) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Judged> responses = {{true, -0.1, kNone}, {false, -0.5, kNone}, {true, kNone, kNone}};
  const Calibration c = calibrate(responses);
  EXPECT_EQ(c.auroc_logprob, 1);
  EXPECT_TRUE(std::isnan(c.auroc_confidence));
  EXPECT_TRUE(std::isnan(calibrate({}).ece));
}

}  // namespace
}  // namespace ucas

#include "stats/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/json.h"

namespace ucas {
namespace {

TEST(calibration, ranking_and_error_agree_with_scipy_and_numpy) {
  Json goldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  for (const Json& row : goldens.at("calibration")) {
    std::vector<double> p = row.at("p");
    std::vector<bool> right;
    for (int r : row.at("right")) right.push_back(r == 1);
    EXPECT_NEAR(auroc(p, right), row.at("auroc").get<double>(), 1e-12);
    auto bins = reliability(p, right, row.at("bins"));
    EXPECT_NEAR(expected_calibration_error(bins), row.at("ece").get<double>(), 1e-12);
    int64_t count = 0;
    for (const ReliabilityBin& bin : bins) count += bin.count;
    EXPECT_EQ(count, static_cast<int64_t>(p.size()));
  }
}

TEST(calibration, a_perfect_order_a_reversed_one_and_none_at_all) {
  std::vector<bool> right = {false, false, true, true};
  EXPECT_EQ(auroc(std::vector<double>{1, 2, 3, 4}, right), 1.0);
  EXPECT_EQ(auroc(std::vector<double>{4, 3, 2, 1}, right), 0.0);
  EXPECT_EQ(auroc(std::vector<double>{7, 7, 7, 7}, right), 0.5);
  EXPECT_TRUE(std::isnan(auroc(std::vector<double>{1, 2}, {true, true})));
  EXPECT_TRUE(std::isnan(expected_calibration_error(reliability({}, {}))));
}

TEST(calibration, borders_belong_to_the_lower_bin) {
  auto bins = reliability(std::vector<double>{0, 0.1, 0.2, 1}, {true, true, true, true}, 10);
  EXPECT_EQ(bins[0].count, 2);
  EXPECT_EQ(bins[1].count, 1);
  EXPECT_EQ(bins[9].count, 1);
}

}  // namespace
}  // namespace ucas

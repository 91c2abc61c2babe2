#include "stats/spread.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"

namespace ucas {
namespace {

TEST(spread, student_quantiles_and_intervals_agree_with_scipy) {
  Json goldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  for (const Json& row : goldens.at("student_975")) {
    EXPECT_NEAR(student_975(row.at("freedom")), row.at("value").get<double>(), 1e-7) << row.dump();
  }
  const Json& row = goldens.at("mean_estimate");
  Figure figure = mean_estimate(row.at("values").get<std::vector<double>>());
  EXPECT_NEAR(figure.value, row.at("value").get<double>(), 1e-12);
  EXPECT_NEAR(figure.low, row.at("interval")[0].get<double>(), 1e-9);
  EXPECT_NEAR(figure.high, row.at("interval")[1].get<double>(), 1e-9);
}

TEST(spread, the_difference_of_paired_shares_is_that_of_bonett_and_price) {
  Json goldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  for (const Json& row : goldens.at("paired_share")) {
    Figure figure = paired_share_difference(row.at("gained"), row.at("lost"), row.at("pairs"));
    EXPECT_NEAR(figure.value, row.at("value").get<double>(), 1e-12) << row.dump();
    EXPECT_NEAR(figure.low, row.at("low").get<double>(), 1e-6) << row.dump();
    EXPECT_NEAR(figure.high, row.at("high").get<double>(), 1e-6) << row.dump();
  }
}

TEST(spread, what_cannot_be_said_is_unknown) {
  EXPECT_FALSE(mean_estimate({}).known());
  Figure one = mean_estimate(std::vector<double>{0.5});
  EXPECT_EQ(one.value, 0.5);
  EXPECT_FALSE(one.bounded());
  EXPECT_FALSE(paired_share_difference(0, 0, 0).known());
  EXPECT_TRUE(paired_share_difference(0, 0, 30).bounded());  // nobody disagrees: still not certain
}

}  // namespace
}  // namespace ucas

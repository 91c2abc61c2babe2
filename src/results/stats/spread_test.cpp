#include "results/stats/spread.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/text/json.h"

namespace ucas {
namespace {

TEST(spread, student_quantiles_and_intervals_agree_with_scipy) {
  Json goldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  for (const Json& row : goldens.at("student_975")) {
    EXPECT_NEAR(student_quantile(row.at("freedom")), row.at("value").get<double>(), 1e-7) << row.dump();
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

TEST(spread, the_level_reaches_every_interval) {
  const std::vector<double> values = {0.1, 0.2, 0.4};
  const auto width = [](const Figure& f) { return f.high - f.low; };
  EXPECT_NEAR(student_quantile(2, 0.8), 1.885618, 1e-6);  // scipy.stats.t.ppf(0.9, 2)
  EXPECT_NEAR(width(mean_estimate(values, 0.8)) / width(mean_estimate(values)), 1.885618 / 4.302653, 1e-6);
  EXPECT_NEAR(width(paired_share_difference(9, 3, 100, 0.99)) / width(paired_share_difference(9, 3, 100)),
              2.575829 / 1.959964, 1e-6);
}

TEST(spread, equal_values_say_nothing_of_how_they_scatter) {
  EXPECT_FALSE(mean_estimate(std::vector<double>{0.25, 0.25, 0.25}).bounded());
  EXPECT_FALSE(mean_estimate(std::vector<double>{0.9 - 0.8, 0.5 - 0.4}).bounded());  // equal but for rounding
  EXPECT_TRUE(mean_estimate(std::vector<double>{0.25, 0.26}).bounded());
}

TEST(spread, what_cannot_be_said_is_unknown) {
  EXPECT_FALSE(mean_estimate({}).known());
  Figure one = mean_estimate(std::vector<double>{0.5});
  EXPECT_EQ(one.value, 0.5);
  EXPECT_FALSE(one.bounded());
  EXPECT_FALSE(paired_share_difference(0, 0, 0).known());
  EXPECT_TRUE(paired_share_difference(0, 0, 30).bounded());  // no disagreement: still not certain
}

}  // namespace
}  // namespace ucas

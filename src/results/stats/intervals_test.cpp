#include "results/stats/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/rng.h"
#include "base/text/json.h"
#include "results/stats/spread.h"

namespace ucas {
namespace {

const Json& goldens() {
  static const Json kGoldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  return kGoldens;
}

TEST(intervals, special_functions_agree_with_scipy) {
  for (const Json& row : goldens().at("incomplete_beta")) {
    double a = row.at("a"), b = row.at("b"), x = row.at("x"), value = row.at("value");
    EXPECT_NEAR(incomplete_beta(a, b, x), value, 1e-13 + 1e-10 * value) << row.dump();
    if (value < 1e-12 || value > 1 - 1e-6) continue;
    EXPECT_NEAR(beta_quantile(a, b, value), x, 1e-9) << row.dump();
  }
  for (const Json& row : goldens().at("normal_quantile")) {
    EXPECT_NEAR(normal_quantile(row.at("p")), row.at("value").get<double>(), 1e-9) << row.dump();
  }
}

TEST(intervals, of_a_share_agree_with_scipy) {
  for (const Json& row : goldens().at("share")) {
    Interval exact = clopper_pearson(row.at("successes"), row.at("trials"), row.at("level"));
    EXPECT_NEAR(exact.low, row.at("clopper_pearson")[0].get<double>(), 1e-9) << row.dump();
    EXPECT_NEAR(exact.high, row.at("clopper_pearson")[1].get<double>(), 1e-9) << row.dump();
  }
  EXPECT_EQ(clopper_pearson(0, 0).low, 0);
  EXPECT_EQ(clopper_pearson(0, 0).high, 1);
}

// Table 2.3 of Jennison and Turnbull (2000): bounds 2.797 and 1.977; 3.471, 2.454 and 2.004.
TEST(intervals, looks_have_the_levels_of_obrien_and_fleming) {
  const auto two_sided = [](double z) { return std::erfc(z / std::sqrt(2.0)); };
  const std::vector<double> two = obrien_fleming(std::vector<int64_t>{8, 16});
  EXPECT_NEAR(two[0], two_sided(2.797), 2e-5);
  EXPECT_NEAR(two[1], two_sided(1.977), 2e-4);
  const std::vector<double> three = obrien_fleming(std::vector<int64_t>{8, 16, 24});
  EXPECT_NEAR(three[0], two_sided(3.471), 2e-6);
  EXPECT_NEAR(three[1], two_sided(2.454), 5e-5);
  EXPECT_NEAR(three[2], two_sided(2.004), 1e-4);
  EXPECT_NEAR(obrien_fleming(std::vector<int64_t>{4})[0], 0.05, 1e-5);
}

TEST(intervals, clopper_pearson_covers_at_least_its_level) {
  Rng rng(4, 2);
  int covered = 0, runs = 2000;
  for (int run = 0; run < runs; ++run) {
    int64_t right = 0;
    for (int i = 0; i < 30; ++i) right += rng.uniform() < 0.2;
    Interval interval = clopper_pearson(right, 30, 0.9);
    covered += interval.low <= 0.2 && 0.2 <= interval.high;
  }
  EXPECT_GE(covered, 0.89 * runs);
}

TEST(intervals, summary_uses_the_sample_standard_deviation) {
  const Json& row = goldens().at("summary");
  Summary s = summarize(row.at("values").get<std::vector<double>>());
  EXPECT_NEAR(s.mean, row.at("mean").get<double>(), 1e-12);
  EXPECT_NEAR(s.std, row.at("std").get<double>(), 1e-12);
  EXPECT_EQ(summarize(std::vector<double>{0.25}).std, 0);
  EXPECT_EQ(summarize({}).count, 0);
}

TEST(intervals, the_bootstrap_repeats_to_the_bit_and_is_that_of_many_values) {
  const Json& row = goldens().at("bootstrap_mean");
  std::vector<double> values;  // often enough that half a problem at either end is nothing
  for (int i = 0; i < 100; ++i) {
    for (double value : row.at("values").get<std::vector<double>>()) values.push_back(value);
  }
  const double mean = mean_of(values), error = deviation_of(values) / std::sqrt(static_cast<double>(values.size()));
  const Figure interval = share_mean(values, 1, 0.95, 4000), again = share_mean(values, 1, 0.95, 4000);
  EXPECT_NEAR(interval.low, mean - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(interval.high, mean + 1.96 * error, 0.1 * error);
  EXPECT_EQ(interval.low, again.low);
  EXPECT_EQ(interval.high, again.high);
  EXPECT_NE(share_mean(values, 2).low, share_mean(values, 1).low);
}

TEST(stats_macro, each_set_counts_the_same_however_many_problems_it_has) {
  const std::vector<std::vector<double>> sets = {{1}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1}};
  EXPECT_DOUBLE_EQ(macro_mean(sets, 0).value, (1 + 0.2) / 2);
}

TEST(stats_macro, of_one_set_it_is_the_bootstrap_of_its_mean) {
  std::vector<std::vector<double>> sets(1);
  for (int i = 0; i < 200; ++i) sets[0].push_back((i * 37 % 100) / 99.0);
  const Figure macro = macro_mean(sets, 3, 0.95, 4000);
  const Figure plain = share_mean(sets[0], 3, 0.95, 4000);
  EXPECT_NEAR(macro.low, plain.low, 0.005);
  EXPECT_NEAR(macro.high, plain.high, 0.005);
}

TEST(stats_macro, the_interval_is_that_of_the_mean_of_independent_sets) {
  // var of the macro mean = sum of the sets' var / n, over the number of sets squared.
  std::vector<std::vector<double>> sets(2);
  for (int i = 0; i < 100; ++i) sets[0].push_back(i % 2);
  for (int i = 0; i < 400; ++i) sets[1].push_back(i % 4 == 0);
  const double sigma = std::sqrt(0.25 / 100 + 0.1875 / 400) / 2;
  const Figure macro = macro_mean(sets, 1, 0.95, 8000);
  EXPECT_NEAR(macro.low, macro.value - 1.96 * sigma, 0.006);
  EXPECT_NEAR(macro.high, macro.value + 1.96 * sigma, 0.006);
}

TEST(stats_macro, where_all_agree_the_width_is_not_zero) {
  const std::vector<std::vector<double>> sets = {{0, 0, 0}, {1, 1}};
  const Figure macro = macro_mean(sets, 0);
  EXPECT_DOUBLE_EQ(macro.value, 0.5);
  EXPECT_NEAR(macro.low, (0 + clopper_pearson(2, 2).low) / 2, 1e-12);
  EXPECT_NEAR(macro.high, (clopper_pearson(0, 3).high + 1) / 2, 1e-12);
}

TEST(stats_macro, without_draws_the_interval_is_unknown) {
  const std::vector<std::vector<double>> sets = {{0, 1}};
  EXPECT_TRUE(std::isnan(macro_mean(sets, 0, 0.95, 0).low));
}

}  // namespace
}  // namespace ucas

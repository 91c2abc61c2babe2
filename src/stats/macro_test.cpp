#include "stats/macro.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ucas {

TEST(stats_macro, each_set_counts_the_same_however_many_problems_it_has) {
  const std::vector<std::vector<double>> sets = {{1}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1}};
  EXPECT_DOUBLE_EQ(macro_mean(sets, 0).mean, (1 + 0.2) / 2);
}

TEST(stats_macro, of_one_set_it_is_the_bootstrap_of_its_mean) {
  std::vector<std::vector<double>> sets(1);
  for (int i = 0; i < 200; ++i) sets[0].push_back((i * 37 % 100) / 99.0);
  const MacroMean macro = macro_mean(sets, 3, 0.95, 4000);
  const Interval plain = bootstrap_mean(sets[0], 3, 0.95, 4000);
  EXPECT_NEAR(macro.interval.low, plain.low, 0.005);
  EXPECT_NEAR(macro.interval.high, plain.high, 0.005);
}

TEST(stats_macro, the_interval_is_that_of_the_mean_of_independent_sets) {
  // var of the macro mean = sum of the sets' var / n, over the number of sets squared.
  std::vector<std::vector<double>> sets(2);
  for (int i = 0; i < 100; ++i) sets[0].push_back(i % 2);
  for (int i = 0; i < 400; ++i) sets[1].push_back(i % 4 == 0);
  const double sigma = std::sqrt(0.25 / 100 + 0.1875 / 400) / 2;
  const MacroMean macro = macro_mean(sets, 1, 0.95, 8000);
  EXPECT_NEAR(macro.interval.low, macro.mean - 1.96 * sigma, 0.006);
  EXPECT_NEAR(macro.interval.high, macro.mean + 1.96 * sigma, 0.006);
}

TEST(stats_macro, where_all_agree_the_width_is_not_zero) {
  const std::vector<std::vector<double>> sets = {{0, 0, 0}, {1, 1}};
  const MacroMean macro = macro_mean(sets, 0);
  EXPECT_DOUBLE_EQ(macro.mean, 0.5);
  EXPECT_NEAR(macro.interval.low, (0 + clopper_pearson(2, 2).low) / 2, 1e-12);
  EXPECT_NEAR(macro.interval.high, (clopper_pearson(0, 3).high + 1) / 2, 1e-12);
}

TEST(stats_macro, without_draws_the_interval_is_unknown) {
  const std::vector<std::vector<double>> sets = {{0, 1}};
  EXPECT_TRUE(std::isnan(macro_mean(sets, 0, 0.95, 0).interval.low));
}

}  // namespace ucas

#include "results/stats/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "base/text/json.h"
#include "results/stats/samples.h"

namespace ucas {
namespace {

const Json& paired_goldens() {
  static const Json kGoldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  return kGoldens;
}

TEST(paired, holm_agrees_with_its_definition_in_numpy) {
  for (const Json& row : paired_goldens().at("holm")) {
    const auto p = row.at("p").get<std::vector<double>>(), expected = row.at("adjusted").get<std::vector<double>>();
    const std::vector<double> adjusted = holm(p);
    ASSERT_EQ(adjusted.size(), expected.size());
    for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << row.dump();
  }
}

TEST(paired, holm_leaves_what_was_not_tested_out_of_the_family) {
  const std::vector<double> adjusted = holm(std::vector<double>{0.02, kUnknown, 0.03});
  EXPECT_NEAR(adjusted[0], 0.04, 1e-15);
  EXPECT_TRUE(std::isnan(adjusted[1]));
  EXPECT_NEAR(adjusted[2], 0.04, 1e-15);
}

TEST(paired, holm_keeps_false_claims_below_its_level) {
  Rng rng(5, 1);
  int claims = 0;
  const int families = 4000;
  for (int family = 0; family < families; ++family) {
    std::vector<double> p;
    for (int i = 0; i < 12; ++i) p.push_back(rng.uniform());
    const std::vector<double> adjusted = holm(p);
    claims += *std::min_element(adjusted.begin(), adjusted.end()) <= 0.05;
  }
  EXPECT_NEAR(static_cast<double>(claims) / families, 0.05, 0.012);  // about three standard errors
}

TEST(paired, student_p_agrees_with_scipy) {
  for (const Json& row : paired_goldens().at("student_p")) {
    EXPECT_NEAR(student_p(row.at("values").get<std::vector<double>>()), row.at("p").get<double>(), 1e-10);
  }
  EXPECT_TRUE(std::isnan(student_p(std::vector<double>{0.3})));
}

TEST(paired, equal_differences_have_no_p) {
  EXPECT_TRUE(std::isnan(student_p(std::vector<double>{0.0, 0.0})));
  EXPECT_TRUE(std::isnan(student_p(std::vector<double>{-0.012, -0.012})));
  EXPECT_TRUE(std::isnan(student_p(std::vector<double>{0.9 - 0.8, 0.5 - 0.4})));  // equal but for rounding
}

TEST(paired, two_independent_samples_are_compared_as_by_welch) {
  // scipy.stats.ttest_ind(b, a, equal_var=False) and its confidence_interval()
  const std::vector<double> a = {0.70, 0.72, 0.74, 0.72}, b = {0.76, 0.80, 0.72, 0.80};
  const TwoSamples d = welch(a, b);
  EXPECT_NEAR(d.change.value, 0.05, 1e-12);
  EXPECT_NEAR(d.p, 0.0733161781533932, 1e-9);
  EXPECT_NEAR(d.change.low, -0.0074829637391554335, 1e-9);
  EXPECT_TRUE(std::isnan(welch(std::vector<double>{0.5}, b).p));
  EXPECT_FALSE(welch(std::vector<double>{0.5, 0.5}, std::vector<double>{0.6, 0.6}).change.bounded());
}

std::vector<double> pass_of(const Json& correct, int64_t n, int64_t k) {
  std::vector<double> out;
  for (int64_t c : correct) out.push_back(pass_at_k({n, c}, k));
  return out;
}

TEST(paired, the_difference_of_pass_at_k_agrees_with_numpy_on_one_set_and_averaged_over_sets) {
  for (const Json& row : paired_goldens().at("paired_pass_at_k")) {
    std::vector<PairedSet> sets;
    for (const Json& set : row.at("sets")) {
      sets.push_back({pass_of(set.at("a"), row.at("n"), row.at("k")), pass_of(set.at("b"), row.at("n"), row.at("k"))});
    }
    const double tolerance = row.at("tolerance");
    const PairedDifference all = paired_macro_difference(sets, 3);
    EXPECT_NEAR(all.mean, row.at("mean").get<double>(), 1e-12);
    EXPECT_NEAR(all.interval.low, row.at("interval")[0].get<double>(), tolerance);
    EXPECT_NEAR(all.interval.high, row.at("interval")[1].get<double>(), tolerance);
    EXPECT_NEAR(all.p, row.at("p").get<double>(), tolerance);
    const PairedDifference last = paired_macro_difference({&sets.back(), 1}, 3);
    EXPECT_NEAR(last.interval.low, row.at("last_set")[0].get<double>(), tolerance);
    EXPECT_NEAR(last.interval.high, row.at("last_set")[1].get<double>(), tolerance);
  }
}

TEST(paired, the_mean_over_benchmarks_agrees_with_numpy) {
  const Json& row = paired_goldens().at("macro_mean");
  const Figure m = macro_mean(row.at("sets").get<std::vector<std::vector<double>>>(), 3, 0.95, 20000);
  EXPECT_NEAR(m.value, row.at("mean").get<double>(), 1e-12);
  EXPECT_NEAR(m.low, row.at("interval")[0].get<double>(), row.at("tolerance").get<double>());
  EXPECT_NEAR(m.high, row.at("interval")[1].get<double>(), row.at("tolerance").get<double>());
}

TEST(paired, runs_and_problems_have_the_interval_of_a_calculation_by_hand) {
  // Means of runs 0.1, 0.2, 0.3; of problems 0.1, 0.3, 0.2, 0.2; every rest 0.05 but for the signs.
  const RunRows rows = {{0.05, 0.15, 0.1, 0.1}, {0.1, 0.3, 0.15, 0.25}, {0.15, 0.45, 0.35, 0.25}};
  const std::vector<size_t> one = {4}, two = {2, 2};
  const TwoSamples d = two_way(rows, one);
  EXPECT_NEAR(d.change.value, 0.2, 1e-12);
  // Runs: s2 = 0.01, over 3; problems: s2 = 0.02 / 3, rest 0.0075 / 6: (0.02 / 3 - 0.00125 / 3) / 4.
  double squares = 0;
  const double run[] = {0.1, 0.2, 0.3}, problem[] = {0.1, 0.3, 0.2, 0.2};
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < 4; ++i) squares += std::pow(rows[r][i] - run[r] - problem[i] + 0.2, 2);
  }
  const double runs = 0.01 / 3, problems = std::max(0.0, (0.02 / 3 - squares / 6 / 3) / 4);
  const double half = std::sqrt(std::pow(student_quantile(2), 2) * runs + std::pow(student_quantile(3), 2) * problems);
  EXPECT_NEAR(d.change.high - d.change.value, half, 1e-9);
  EXPECT_GT(half, student_quantile(2) * std::sqrt(runs));   // wider than by the runs alone
  const TwoSamples touching = two_way(rows, one, 1 - d.p);  // p is where the interval touches 0
  EXPECT_NEAR(touching.change.low, 0, 1e-6);
  EXPECT_NEAR(two_way(rows, two).change.value, 0.2, 1e-12);
}

TEST(paired, problems_that_differ_by_chance_alone_leave_the_t_interval_of_the_runs) {
  const std::vector<size_t> one = {2};
  const RunRows rows = {{0.3, 0.1}, {0.1, 0.3}, {0.6, 0.2}, {0.2, 0.6}};  // every problem 0.3 in the mean
  const TwoSamples d = two_way(rows, one);
  const Figure t = mean_estimate(std::vector<double>{0.2, 0.2, 0.4, 0.4});
  EXPECT_NEAR(d.change.low, t.low, 1e-9);
  EXPECT_NEAR(d.p, student_p(std::vector<double>{0.2, 0.2, 0.4, 0.4}), 1e-6);
  EXPECT_FALSE(two_way({{0.3, 0.1}}, one).change.bounded());
  EXPECT_FALSE(two_way({{0.3, 0.1}, {0.1, 0.3}}, one).change.bounded());  // runs that do not scatter
}

TEST(paired, runs_that_are_not_paired_are_at_least_as_uncertain_as_by_welch) {
  const RunRows a = {{0, 0.2, 0.1}, {0.1, 0.3, 0.2}, {0.2, 0.2, 0.2}}, b = {{0.9, 0.5, 0.1}, {0.8, 0.6, 0.4}};
  const std::vector<size_t> one = {3};
  const TwoSamples d = two_way(a, b, one), t = welch(std::vector<double>{0.1, 0.2, 0.2}, std::vector<double>{0.5, 0.6});
  EXPECT_NEAR(d.change.value, t.change.value, 1e-12);
  EXPECT_LE(d.change.low, t.change.low);
  EXPECT_GE(d.p, t.p - 1e-9);
}

TEST(paired, a_small_set_weighs_as_much_as_a_large_one) {
  const PairedSet small = {{0, 0}, {1, 1}}, large = {std::vector<double>(100, 0.5), std::vector<double>(100, 0.5)};
  EXPECT_NEAR(paired_macro_difference(std::vector<PairedSet>{small, large}, 1).mean, 0.5, 1e-15);
}

TEST(paired, equal_models_are_told_apart_in_about_one_of_twenty_tables) {
  Rng rng(8, 3);
  int apart = 0;
  const int runs = 300;
  for (int run = 0; run < runs; ++run) {
    std::vector<PairedSet> sets(3);
    for (PairedSet& set : sets) {
      for (int i = 0; i < 30; ++i) {
        const double skill = rng.uniform();
        set.a.push_back(rng.uniform() < skill);
        set.b.push_back(rng.uniform() < skill);
      }
    }
    apart += paired_macro_difference(sets, static_cast<uint64_t>(run), 0.95, 400).p <= 0.05;
  }
  EXPECT_LT(apart, 30);  // 15 expected, 30 is four standard errors away
  EXPECT_GT(apart, 2);
}

TEST(paired, the_paired_test_of_yes_and_no_agrees_with_scipy) {
  for (const Json& row : paired_goldens().at("mcnemar")) {
    double p = row.at("p");
    EXPECT_NEAR(mcnemar(row.at("gained"), row.at("lost")), p, 1e-9 * p + 1e-15) << row.dump();
  }
  EXPECT_EQ(mcnemar(0, 0), 1.0);
}

TEST(paired, the_paired_test_agrees_with_the_exact_permutation_test) {
  for (const Json& row : paired_goldens().at("paired")) {
    const PairedSet set = {row.at("a").get<std::vector<double>>(), row.at("b").get<std::vector<double>>()};
    const PairedDifference result = paired_macro_difference({&set, 1}, 3);
    EXPECT_NEAR(result.mean, row.at("mean").get<double>(), 1e-12);
    EXPECT_NEAR(result.p, row.at("p").get<double>(), row.at("tolerance").get<double>());
    EXPECT_LE(result.interval.low, result.mean);
    EXPECT_GE(result.interval.high, result.mean);
  }
  const PairedSet same = {{0, 1, 0.5}, {0, 1, 0.5}};
  EXPECT_EQ(paired_macro_difference({&same, 1}, 1).p, 1);
}

}  // namespace
}  // namespace ucas

// How often an interval covers, and how often a test finds, in simulated evaluations: what the words of a report
// promise.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "stats/intervals.h"
#include "stats/paired.h"

namespace ucas {
namespace {

// Gamma(shape): Marsaglia and Tsang, with Johnk's correction below 1.
double gamma_of(double shape, Rng& rng) {
  if (shape < 1) return gamma_of(shape + 1, rng) * std::pow(rng.uniform() + 1e-300, 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double z = rng.normal(), v = std::pow(1 + c * z, 3);
    if (v > 0 && std::log(rng.uniform() + 1e-300) < z * z / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

// mean@16 of `problems` problems whose chance of being solved has a Beta distribution: most are never or always solved.
std::vector<double> mean_at_16(int problems, double mean, Rng& rng) {
  constexpr double kConcentration = 0.5;
  std::vector<double> values;
  for (int i = 0; i < problems; ++i) {
    const double a = gamma_of(mean * kConcentration, rng), b = gamma_of((1 - mean) * kConcentration, rng);
    int right = 0;
    for (int k = 0; k < 16; ++k) right += rng.uniform() < a / (a + b);
    values.push_back(right / 16.0);
  }
  return values;
}

// Share of `runs` evaluations whose 95 % interval holds the true mean.
template <class IntervalOf>
double covered(int problems, double mean, int runs, IntervalOf interval_of) {
  Rng rng(17, static_cast<uint64_t>(problems) * 1000 + static_cast<uint64_t>(mean * 100));
  int count = 0;
  for (int run = 0; run < runs; ++run) {
    const Interval found = interval_of(mean_at_16(problems, mean, rng), static_cast<uint64_t>(run));
    count += found.low <= mean && mean <= found.high;
  }
  return static_cast<double>(count) / runs;
}

// 250 evaluations: the deviation of a share of 0.95 is 0.014.
TEST(coverage, of_a_mean_over_few_problems_is_that_which_is_stated) {
  for (int problems : {15, 30, 83}) {
    for (double mean : {0.03, 0.13, 0.5}) {
      const double share = covered(problems, mean, 250, [](const std::vector<double>& values, uint64_t seed) {
        return bootstrap_share(values, seed, 0.95, 200);
      });
      EXPECT_GE(share, 0.90) << problems << " problems, mean " << mean;
    }
  }
}

TEST(coverage, of_the_percentile_bootstrap_is_less_on_few_hard_problems) {
  const double share = covered(30, 0.03, 250, [](const std::vector<double>& values, uint64_t seed) {
    return bootstrap_mean(values, seed, 0.95, 200);
  });
  EXPECT_LT(share, 0.85);
}

TEST(coverage, of_a_macro_mean_with_a_small_set_is_that_which_is_stated) {
  Rng rng(5, 5);
  int count = 0;
  constexpr int kRuns = 200;
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<std::vector<double>> sets = {mean_at_16(30, 0.05, rng), mean_at_16(120, 0.4, rng)};
    const MacroMean found = macro_mean(sets, static_cast<uint64_t>(run), 0.95, 200);
    count += found.interval.low <= 0.225 && 0.225 <= found.interval.high;
  }
  EXPECT_GE(count, 0.90 * kRuns);
}

TEST(coverage, from_100_problems_on_the_interval_is_the_percentile_bootstrap) {
  Rng rng(2, 2);
  const std::vector<double> values = mean_at_16(100, 0.3, rng);
  EXPECT_EQ(bootstrap_share(values, 4).low, bootstrap_mean(values, 4).low);
  EXPECT_EQ(bootstrap_share(values, 4).high, bootstrap_mean(values, 4).high);
}

// Share of `experiments` of paired seeds, whose differences scatter by `deviation` about `effect`, that find it at 5 %.
double found(int seeds, double effect, double deviation, int experiments) {
  Rng rng(23, static_cast<uint64_t>(seeds * 100 + effect * 10));
  int count = 0;
  for (int e = 0; e < experiments; ++e) {
    std::vector<double> differences;
    for (int s = 0; s < seeds; ++s) differences.push_back(effect + deviation * rng.normal());
    count += student_p(differences) <= 0.05;
  }
  return static_cast<double>(count) / experiments;
}

TEST(power, of_eight_paired_seeds_is_what_the_protocol_counts_on) {
  EXPECT_NEAR(found(8, 3, 2, 2000), 0.95, 0.025);
  EXPECT_NEAR(found(8, 2, 2, 2000), 0.68, 0.04);
  EXPECT_NEAR(found(12, 3, 3, 2000), 0.88, 0.03);
  EXPECT_NEAR(found(4, 6, 2, 2000), 0.97, 0.02);
  EXPECT_NEAR(found(4, 6, 3, 2000), 0.75, 0.04);
  EXPECT_NEAR(found(8, 0, 2, 2000), 0.05, 0.016);
}

// With Holm over two outcomes the chance of any false claim stays at 5 %.
TEST(power, holm_keeps_false_claims_of_two_outcomes_at_the_level) {
  Rng rng(29, 1);
  int claims = 0;
  constexpr int kExperiments = 2000;
  for (int e = 0; e < kExperiments; ++e) {
    std::vector<double> p;
    for (int outcome = 0; outcome < 2; ++outcome) {
      std::vector<double> differences;
      for (int s = 0; s < 8; ++s) differences.push_back(rng.normal());
      p.push_back(student_p(differences));
    }
    const std::vector<double> corrected = holm(p);
    claims += corrected[0] <= 0.05 || corrected[1] <= 0.05;
  }
  EXPECT_LE(claims, 0.06 * kExperiments);
  EXPECT_GE(claims, 0.03 * kExperiments);
}

}  // namespace
}  // namespace ucas

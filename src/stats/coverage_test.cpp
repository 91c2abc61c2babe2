// How often an interval covers, and how often a test finds, in simulated evaluations: what the words of a report
// promise.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "stats/intervals.h"
#include "stats/paired.h"
#include "stats/spread.h"

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

// mean@16 of two models on the same problems: of a share `moved` the second model's chance is drawn anew.
std::pair<std::vector<double>, std::vector<double>> two_models(int problems, double mean, double moved_mean,
                                                               double moved, Rng& rng) {
  constexpr double kConcentration = 0.5;
  const auto chance = [&](double m) {
    const double a = gamma_of(m * kConcentration, rng), b = gamma_of((1 - m) * kConcentration, rng);
    return a / (a + b);
  };
  const auto share = [&](double p) {
    int right = 0;
    for (int k = 0; k < 16; ++k) right += rng.uniform() < p;
    return right / 16.0;
  };
  std::pair<std::vector<double>, std::vector<double>> out;
  for (int i = 0; i < problems; ++i) {
    const double p = chance(mean), other = chance(moved_mean);
    out.first.push_back(share(p));
    out.second.push_back(share(rng.uniform() < moved ? other : p));
  }
  return out;
}

// Share of 250 pairs of models whose interval of the difference holds the true one; by the percentile bootstrap, too.
std::pair<double, double> covered_difference(int problems, double mean, double gain, double moved) {
  Rng rng(31, static_cast<uint64_t>(problems * 1000 + mean * 100 + moved * 10));
  constexpr int kRuns = 250;
  int count = 0, percentile = 0;
  const auto holds = [&](const Interval& found) { return found.low <= moved * gain && moved * gain <= found.high; };
  for (int run = 0; run < kRuns; ++run) {
    const auto [a, b] = two_models(problems, mean, mean + gain, moved, rng);
    const PairedSet set = {a, b};
    count += holds(paired_macro_difference({&set, 1}, static_cast<uint64_t>(run), 0.95, 200).interval);
    std::vector<double> difference;
    for (size_t i = 0; i < a.size(); ++i) difference.push_back(b[i] - a[i]);
    percentile += holds(bootstrap_mean(difference, static_cast<uint64_t>(run), 0.95, 200));
  }
  return {static_cast<double>(count) / kRuns, static_cast<double>(percentile) / kRuns};
}

TEST(coverage, of_a_difference_over_few_problems_is_that_which_is_stated) {
  for (int problems : {15, 30, 83}) {
    for (double mean : {0.03, 0.13, 0.5}) {
      for (double moved : {0.1, 0.5}) {
        EXPECT_GE(covered_difference(problems, mean, 0.2, moved).first, 0.90)
            << problems << " problems, mean " << mean << ", moved " << moved;
      }
    }
  }
}

TEST(coverage, of_the_percentile_bootstrap_of_a_difference_is_less_where_few_problems_differ) {
  EXPECT_LT(covered_difference(15, 0.03, 0.2, 0.1).second, 0.75);
}

// z-scores averaged over a problem's responses: Student's t, as compare/diagnosis.cpp has it of few problems.
TEST(coverage, of_students_t_over_few_problems_is_that_which_is_stated) {
  Rng rng(37, 2);
  for (int problems : {5, 20, 60}) {
    constexpr int kRuns = 1000;
    int t = 0, percentile = 0;
    for (int run = 0; run < kRuns; ++run) {
      std::vector<double> values;  // skewed: a problem has between one and eight responses
      for (int i = 0; i < problems; ++i) {
        const auto responses = 1 + rng.below(8);
        double sum = 0;
        for (int64_t r = 0; r < responses; ++r) sum += gamma_of(4, rng) / 4 - 1;
        values.push_back(sum / static_cast<double>(responses));
      }
      const Figure found = mean_estimate(values);
      t += found.low <= 0 && 0 <= found.high;
      if (problems > 5) continue;
      const Interval drawn = bootstrap_mean(values, static_cast<uint64_t>(run), 0.95, 200);
      percentile += drawn.low <= 0 && 0 <= drawn.high;
    }
    EXPECT_GE(t, 0.91 * kRuns) << problems;
    if (problems == 5) {
      EXPECT_LT(percentile, 0.87 * kRuns);
    }
  }
}

TEST(coverage, from_100_problems_on_the_interval_is_the_percentile_bootstrap) {
  Rng rng(2, 2);
  const std::vector<double> values = mean_at_16(100, 0.3, rng);
  EXPECT_EQ(bootstrap_share(values, 4).low, bootstrap_mean(values, 4).low);
  EXPECT_EQ(bootstrap_share(values, 4).high, bootstrap_mean(values, 4).high);
  Rng one(3, 3), other(3, 3);
  EXPECT_EQ(redraw_mean(values, {-1, 1}, one), redraw_mean(values, {0, 1}, other));
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

// How often an interval covers, and how often a test finds, in simulated evaluations: what the words of a report
// promise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "results/stats/intervals.h"
#include "results/stats/paired.h"
#include "results/stats/spread.h"

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
  for (int problems : {15, 30, 83, 100, 120}) {
    for (double mean : {0.03, 0.13, 0.5}) {
      const double share = covered(problems, mean, 250, [](const std::vector<double>& values, uint64_t seed) {
        const Figure found = share_mean(values, seed, 0.95, 200);
        return Interval{found.low, found.high};
      });
      EXPECT_GE(share, 0.90) << problems << " problems, mean " << mean;
    }
  }
}

TEST(coverage, of_a_macro_mean_with_a_small_set_is_that_which_is_stated) {
  Rng rng(5, 5);
  int count = 0;
  constexpr int kRuns = 200;
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<std::vector<double>> sets = {mean_at_16(30, 0.05, rng), mean_at_16(120, 0.4, rng)};
    const Figure found = macro_mean(sets, static_cast<uint64_t>(run), 0.95, 200);
    count += found.low <= 0.225 && 0.225 <= found.high;
  }
  EXPECT_GE(count, 0.90 * kRuns);
}

// mean@16 of two models on the same problems: of a share `moved` the second model's chance is sampled anew.
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

// Share of 250 pairs of models whose interval of the difference holds the true one.
double covered_difference(int problems, double mean, double gain, double moved) {
  Rng rng(31, static_cast<uint64_t>(problems * 1000 + mean * 100 + moved * 10));
  constexpr int kRuns = 250;
  int count = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto [a, b] = two_models(problems, mean, mean + gain, moved, rng);
    const PairedSet set = {a, b};
    const Interval found = paired_macro_difference({&set, 1}, static_cast<uint64_t>(run), 0.95, 200).interval;
    count += found.low <= moved * gain && moved * gain <= found.high;
  }
  return static_cast<double>(count) / kRuns;
}

TEST(coverage, of_a_difference_over_few_problems_is_that_which_is_stated) {
  for (int problems : {15, 30, 83, 100, 120}) {
    for (double mean : {0.03, 0.13, 0.5}) {
      for (double moved : {0.1, 0.5}) {
        EXPECT_GE(covered_difference(problems, mean, 0.2, moved), 0.90)
            << problems << " problems, mean " << mean << ", moved " << moved;
      }
    }
  }
}

// z-scores averaged over a problem's responses: Student's t, as results/compare/diagnosis.cpp has it.
TEST(coverage, of_students_t_over_few_problems_is_that_which_is_stated) {
  Rng rng(37, 2);
  for (int problems : {5, 20, 60}) {
    constexpr int kRuns = 1000;
    int t = 0;
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
    }
    EXPECT_GE(t, 0.91 * kRuns) << problems;
  }
}

// mean@16 of two methods over several seeds: problems have a difficulty of their own, seeds a luck that both methods
// share and one of the difference, and a problem may suit one method better (`suits`, in logits).
struct Experiment {
  int seeds = 8, problems = 60, sets = 1;
  double middle = 0, effect = 0, suits = 0, luck = 0.1;  // logits
  RunRows differences(Rng& rng) const {
    RunRows rows(static_cast<size_t>(seeds));
    std::vector<std::pair<double, double>> problem;
    for (int i = 0; i < problems * sets; ++i) problem.emplace_back(middle + 2 * rng.normal(), suits * rng.normal());
    for (std::vector<double>& row : rows) {
      const double shared = 0.3 * rng.normal(), own = effect + luck * rng.normal();
      for (const auto& [difficulty, suited] : problem) {
        const double both = difficulty + shared + 0.7 * rng.normal();
        const double second = both + own + suited + 0.5 * rng.normal(), first = both + 0.5 * rng.normal();
        int less = 0;
        for (int k = 0; k < 16; ++k) less += (rng.uniform() < chance(second)) - (rng.uniform() < chance(first));
        row.push_back(less / 16.0);
      }
    }
    return rows;
  }
  TwoSamples of(const RunRows& rows, double level = 0.95) const {
    return two_way(rows, std::vector<size_t>(static_cast<size_t>(sets), static_cast<size_t>(problems)), level);
  }
  TwoSamples found(Rng& rng) const { return of(differences(rng)); }
  static double chance(double logit) { return 1 / (1 + std::exp(-logit)); }
};

constexpr double kMiddles[] = {-5.5, -2.2, 0.0};  // 3, 20 and 50 %

// Of experiments without a difference, the share whose interval holds 0.
double covered_over_seeds(int seeds, int problems, double middle, int experiments) {
  const Experiment experiment{seeds, problems, 1, middle, 0, 0, 0.1};
  Rng rng(41, static_cast<uint64_t>(seeds * 1000 + problems));
  int count = 0;
  for (int i = 0; i < experiments; ++i) {
    const Figure change = experiment.found(rng).change;
    count += !change.bounded() || (change.low <= 0 && 0 <= change.high);
  }
  return static_cast<double>(count) / experiments;
}

// 100 experiments measure a chance of 0.95 to 0.02, the nine cells of a number of problems together to 0.007.
TEST(coverage, of_a_difference_over_seeds_and_problems_is_that_which_is_stated) {
  for (const int problems : {30, 60, 100, 240}) {
    double sum = 0;
    for (const double middle : kMiddles) {
      for (const int seeds : {3, 8, 16}) {
        const double covered = covered_over_seeds(seeds, problems, middle, 100);
        EXPECT_GE(covered, 0.87) << seeds << " seeds, " << problems << " problems, middle " << middle;
        sum += covered / 9;
      }
    }
    EXPECT_GE(sum, 0.93) << problems;
    EXPECT_LE(sum, 0.985) << problems;
  }
}

// Share of experiments that find a difference at 5 %, by the rule that results/compare/contrast.h decides with.
double found(const Experiment& experiment, int experiments) {
  Rng rng(23, static_cast<uint64_t>(experiment.seeds * 100 + experiment.problems));
  int count = 0;
  for (int e = 0; e < experiments; ++e) {
    const Figure change = experiment.found(rng).change;
    count += change.bounded() && (change.low > 0 || change.high < 0);
  }
  return static_cast<double>(count) / experiments;
}

// 0.13 points of accuracy a logit's hundredth: three points are 0.23 logits.
TEST(power, of_the_rule_that_decides_is_what_the_protocol_counts_on) {
  EXPECT_LE(found({8, 60, 2, 0, 0, 0.5, 0.1}, 150), 0.12);     // false claims
  EXPECT_GE(found({8, 60, 2, 0, 0.23, 0, 0.1}, 100), 0.75);    // three points, two families of 60 problems
  EXPECT_GE(found({8, 240, 2, 0, 0.23, 0.5, 0.1}, 40), 0.95);  // of 240
  EXPECT_LE(found({3, 60, 2, 0, 0.23, 0.5, 0.1}, 100), 0.6);   // three seeds do not see it
}

// Share of experiments of 16 seeds that find a difference at a look at 8 or at 16.
double found_at_looks(const Experiment& experiment, int experiments) {
  const std::vector<int64_t> looks = {8, 16};
  const std::vector<double> levels = obrien_fleming(looks);
  Rng rng(43, static_cast<uint64_t>(experiment.problems));
  int count = 0;
  for (int e = 0; e < experiments; ++e) {
    const RunRows rows = experiment.differences(rng);
    bool any = false;
    for (size_t i = 0; i < looks.size(); ++i) {
      const Figure change = experiment.of({rows.begin(), rows.begin() + looks[i]}, 1 - levels[i]).change;
      any = any || (change.bounded() && (change.low > 0 || change.high < 0));
    }
    count += any;
  }
  return static_cast<double>(count) / experiments;
}

TEST(power, of_two_looks_claims_falsely_as_often_as_one) {
  EXPECT_LE(found_at_looks({16, 60, 2, 0, 0, 0.5, 0.1}, 200), 0.1);
  EXPECT_GE(found_at_looks({16, 60, 2, 0, 0.23, 0.5, 0.1}, 60), 0.85);
}

// The tables of docs/numerics.md: build/ucas-tests --gtest_also_run_disabled_tests --gtest_filter='power.DISABLED*'
TEST(power, DISABLED_tables_of_coverage_and_power) {
  for (const int problems : {30, 60, 100, 240}) {
    for (const int seeds : {3, 8, 16}) {
      std::printf("%3d problems, %2d seeds:", problems, seeds);
      for (const double middle : kMiddles) {
        const double covered = covered_over_seeds(seeds, problems, middle, 3000);
        std::printf(" %.3f", covered);
        EXPECT_GE(covered, 0.93) << seeds << " seeds, " << problems << " problems, middle " << middle;
        EXPECT_LE(covered, 0.985) << seeds << " seeds, " << problems << " problems, middle " << middle;
      }
      std::printf("\n");
    }
  }
  for (const int problems : {60, 240}) {
    for (const double points : {0.0, 1.0, 1.5, 2.0, 3.0}) {
      const double effect = points * 0.23 / 3;
      std::printf("2 x %d problems, %.1f points: 8 seeds %.3f, 16 seeds %.3f, looks at 8 and 16 %.3f\n", problems,
                  points, found({8, problems, 2, 0, effect, 0.5, 0.1}, 1000),
                  found({16, problems, 2, 0, effect, 0.5, 0.1}, 1000),
                  found_at_looks({16, problems, 2, 0, effect, 0.5, 0.1}, 1000));
    }
  }
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

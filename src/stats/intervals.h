// Means with their uncertainty. `level` is the coverage, 0.95 unless told. Bootstraps draw from a seeded counter-based
// stream, so a report can be rebuilt to the digit. Threads: any.
#pragma once

#include <cstdint>
#include <span>

namespace ucas {

struct Interval {
  double low = 0, high = 0;
};

struct Summary {
  int64_t count = 0;
  double mean = 0, std = 0, min = 0, max = 0;  // std over count - 1; 0 for fewer than two values
};
Summary summarize(std::span<const double> values);

// A share of `trials` independent yes/no trials. Clopper-Pearson never covers less than its level; Wilson is narrower
// and right on average. [0, 1] without trials.
Interval clopper_pearson(int64_t successes, int64_t trials, double level = 0.95);
Interval wilson(int64_t successes, int64_t trials, double level = 0.95);

// Percentile bootstrap of the mean over problems: for values that are themselves means over samples (pass@k, mean@k),
// where samples of one problem are not independent of each other.
Interval bootstrap_mean(std::span<const double> values, uint64_t seed, double level = 0.95, int64_t draws = 2000);

// The bounds between which `level` of the drawn values lie; linear between order statistics, as numpy does by default.
Interval percentile_interval(std::span<const double> drawn, double level = 0.95);

// Two models on the same problems, b - a: mean, bootstrap interval over problems, and the two-sided p of the sign-flip
// permutation test (how often chance alone gives a mean difference this large).
struct PairedDifference {
  double mean = 0;
  Interval interval;
  double p = 1;
};
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, uint64_t seed,
                                   double level = 0.95, int64_t draws = 10000);

// McNemar's test on two yes/no series of the same problems, exact: the two-sided p of `gained` among gained + lost fair
// coin tosses. 1 where nothing differs.
double mcnemar(int64_t gained, int64_t lost);

// Regularized incomplete beta function I_x(a, b) for a, b > 0, and the x at which it is p.
double incomplete_beta(double a, double b, double x);
double beta_quantile(double a, double b, double p);
// The x with Phi(x) = p, 0 < p < 1.
double normal_quantile(double p);

}  // namespace ucas

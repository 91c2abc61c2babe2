// What may be said of a difference between two models on the same problems, where one table makes several such
// comparisons. Next to intervals.h (one set of problems) and spread.h (several seeds).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "results/stats/intervals.h"
#include "results/stats/spread.h"

namespace ucas {

// McNemar's test on two yes/no series of the same problems, exact: the two-sided p of `gained` among gained + lost fair
// coin tosses. 1 where nothing differs.
double mcnemar(int64_t gained, int64_t lost);

// Values of one set of problems (a benchmark) under two models, problem by problem.
struct PairedSet {
  std::vector<double> a, b;
};

// b - a of values between 0 and 1: mean, bootstrap interval over problems (redraw_mean), and the two-sided p of the
// sign-flip permutation test (how often chance alone gives a mean difference this large).
struct PairedDifference {
  double mean = 0;
  Interval interval;
  double p = 1;
};
// Mean over sets of the mean difference b - a, each set counting the same. The bootstrap redraws problems within each
// set, never the sets; the sign-flip test flips each problem's difference on its own. Every set has at least one
// problem.
PairedDifference paired_macro_difference(std::span<const PairedSet> sets, uint64_t seed, double level = 0.95,
                                         int64_t draws = 10000);

// Holm's step-down correction (1979): adjusted p in the order given; rejecting those <= alpha keeps the chance of any
// false claim in the family below alpha, however the tests depend on each other. Values that are not finite stay out
// of the family and come back as they are.
std::vector<double> holm(std::span<const double> p);

// Two-sided p of Student's t for the mean of `values` being 0: differences between runs paired by seed. Unknown for
// fewer than two values and for constant ones, 0 included: their deviation says nothing of how the next would scatter.
double student_p(std::span<const double> values);

// Mean of `b` less mean of `a`, two independent samples: Welch's t interval and two-sided p. Unknown bounds and p where
// a sample has fewer than two values, or both are constant.
struct TwoSamples {
  Figure change;
  double p = kUnknown;
};
TwoSamples welch(std::span<const double> a, std::span<const double> b, double level = 0.95);

// Several runs of two models on the same problems: values [run][problem], of pairs the differences. Runs and problems
// are both sampled from more of their kind, so the mean's variance has a part of each,
//   half width^2 = t(S - 1)^2 s2(runs) / S + t(n - 1)^2 max(0, s2(problems) / n - s2(rest) / (n S))
// with the t of each part's own degrees of freedom (Cochran's weights). What single answers scatter is in the first
// part and is taken out of the second. p is 1 - the level at which the interval touches 0. `sets`: problems of each set
// contiguous, each set counting the same. Unknown bounds and p for fewer than two runs, and where all runs have one
// mean.
using RunRows = std::vector<std::vector<double>>;
TwoSamples two_way(const RunRows& differences, std::span<const size_t> sets, double level = 0.95);
// The same of runs that are not paired, second less first; runs by Welch's t.
TwoSamples two_way(const RunRows& first, const RunRows& second, std::span<const size_t> sets, double level = 0.95);

}  // namespace ucas

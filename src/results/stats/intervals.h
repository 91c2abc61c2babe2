// Means with their uncertainty. `level` is the coverage, 0.95 by default. Bootstraps resample by a seeded counter-based
// stream, so a report can be rebuilt to the digit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "results/stats/spread.h"

namespace ucas {

struct Interval {
  double low = 0, high = 0;
};

struct Summary {
  int64_t count = 0;
  double mean = 0, std = 0, min = 0, max = 0;  // std over count - 1; 0 for fewer than two values
};
Summary summarize(std::span<const double> values);

// A share of `trials` independent yes/no trials (Clopper-Pearson): never covers less than its level. [0, 1] without
// trials.
Interval clopper_pearson(int64_t successes, int64_t trials, double level = 0.95);

// One resample of a bootstrap of the mean over problems, for values within `range` that are themselves means over
// samples (pass@k, mean@k). A mean of few problems, most of them near one end (or, of differences, equal), scatters
// less in resamples of what was seen than it does: of 30 problems with a mean of 3 % the percentile bootstrap covers 70
// % instead of 95, of a difference in few of 15 problems 55 %. So each resample weighs the problems at random (Rubin's
// Bayesian bootstrap), with half a problem at either end of the range, as Jeffreys' interval of a share has.
// coverage_test.cpp counts how often it covers.
double redraw_mean(std::span<const double> values, const Interval& range, Rng& rng);

// The bounds of `level` of the resampled values; linear between order statistics, as numpy does by default.
Interval percentile_interval(std::span<const double> resampled, double level = 0.95);

// Mean of the sets' means, of values between 0 and 1, each set counting the same however many problems it has. The
// interval is a bootstrap that redraws the problems within each set (redraw_mean) and never the sets: they are those of
// the paper, not a sample of possible ones. Where every set is all 0 or all 1 there is nothing to redraw; then it is
// the mean of the sets' Clopper-Pearson bounds, which covers at least `level`. `draws` = 0: no interval (NaN). Every
// set has at least one value.
Figure macro_mean(std::span<const std::vector<double>> sets, uint64_t seed, double level = 0.95, int64_t draws = 2000,
                  uint64_t stream = 0x6d616372);
// The same of one set.
Figure share_mean(const std::vector<double>& values, uint64_t seed, double level = 0.95, int64_t draws = 2000);

// Looks at a growing number of observations, ascending, each with a test at its own level: those of O'Brien and Fleming
// (1979), two-sided, that keep the chance of any false claim at `alpha`. 8 and 16: 0.0052, 0.048.
std::vector<double> obrien_fleming(std::span<const int64_t> looks, double alpha = 0.05);

// Regularized incomplete beta function I_x(a, b) for a, b > 0, and the x at which it is p.
double incomplete_beta(double a, double b, double x);
double beta_quantile(double a, double b, double p);
// The x with Phi(x) = p, 0 < p < 1.
double normal_quantile(double p);

}  // namespace ucas

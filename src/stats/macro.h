// A figure over several sets of problems, each set counting the same however many problems it has. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stats/intervals.h"

namespace ucas {

struct MacroMean {
  double mean = 0;
  Interval interval;
};

// Mean of the sets' means. The interval is a percentile bootstrap that redraws the problems within each set and never
// the sets: they are those of the paper, not a sample of possible ones. Where every set is all 0 or all 1 there is
// nothing to redraw; then it is the mean of the sets' Clopper-Pearson bounds, which covers at least `level`.
// `draws` = 0: no interval (NaN). Every set has at least one value.
MacroMean macro_mean(std::span<const std::vector<double>> sets, uint64_t seed, double level = 0.95,
                     int64_t draws = 2000);

}  // namespace ucas

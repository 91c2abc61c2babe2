// Values by their rank: what AUROC and Spearman's correlation are made of.
#pragma once

#include <span>
#include <vector>

namespace ucas {

// 1 .. n, equal values sharing the mean of their places.
std::vector<double> mean_ranks(std::span<const double> values);

// Spearman's rank correlation of pairs; unknown (NaN) where either side is constant.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace ucas

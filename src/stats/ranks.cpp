#include "stats/ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "stats/spread.h"

namespace ucas {

std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<double>(first + 1 + last) / 2;
    first = last;
  }
  return ranks;
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  UCAS_CHECK(a.size() == b.size(), "statistics of pairs need at least one pair");
  const std::vector<double> x = mean_ranks(a), y = mean_ranks(b);
  const double middle = static_cast<double>(x.size() + 1) / 2;  // ties do not move the mean of ranks
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
    xy += (x[i] - middle) * (y[i] - middle);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kUnknown;
}

}  // namespace ucas

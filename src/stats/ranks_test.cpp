#include "stats/ranks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ucas {
namespace {

TEST(ranks, rank_correlation_shares_ranks_between_equal_values) {
  const std::vector<double> a = {1, 2, 3, 4}, b = {1, 1, 2, 2}, flat = {5, 5, 5, 5};
  EXPECT_DOUBLE_EQ(rank_correlation(a, b), 4 / std::sqrt(20.0));  // ranks 1.5 1.5 3.5 3.5
  EXPECT_DOUBLE_EQ(rank_correlation(a, a), 1);
  EXPECT_TRUE(std::isnan(rank_correlation(a, flat)));
}

}  // namespace
}  // namespace ucas

// OPO: the baseline of least variance.
#include <gtest/gtest.h>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::compute_advantages;
using testing::group_of;
using testing::per_response;

// Lengths 1, 2, 5 and rewards 1, 0, 1: b = 6 / 8.
TEST(opo_method, long_responses_weigh_more_in_the_baseline) {
  Batch batch = group_of({1, 0, 1}, {1, 2, 5});
  EXPECT_EQ(per_response(batch, compute_advantages(batch, "opo")), (std::vector<float>{0.25f, -0.75f, 0.25f}));
}

TEST(opo_method, with_equal_lengths_it_is_drgrpo) {
  Batch batch = group_of({1, 0, 0, 1, 0.5f}, {3, 3, 3, 3, 3});
  std::vector<float> opo = compute_advantages(batch, "opo").advantage,
                     drgrpo = compute_advantages(batch, "drgrpo").advantage;
  for (size_t t = 0; t < opo.size(); ++t) EXPECT_NEAR(opo[t], drgrpo[t], 1e-6);
}

// Of all baselines it is the one that minimises sum_i L_i (R_i - b)^2, the variance where squared gradients grow with
// L.
TEST(opo_method, no_other_baseline_has_less_of_the_variance_that_it_is_derived_from) {
  const std::vector<float> R = {1, 0.25f, -1, 0.5f};
  const std::vector<size_t> L = {7, 1, 3, 2};
  Batch batch = group_of(R, L);
  const double b = R[0] - static_cast<double>(compute_advantages(batch, "opo").advantage[0]);
  auto variance = [&](double base) {
    double sum = 0;
    for (size_t i = 0; i < R.size(); ++i) sum += static_cast<double>(L[i]) * (R[i] - base) * (R[i] - base);
    return sum;
  };
  for (double moved : {-0.3, -0.01, 0.01, 0.3}) EXPECT_GT(variance(b + moved), variance(b)) << moved;
}

TEST(opo_method, a_lone_response_is_worth_nothing_or_as_in_verl_its_reward) {
  Batch batch = group_of({0.5f}, {2});
  EXPECT_EQ(compute_advantages(batch, "opo").advantage, (std::vector<float>{0, 0}));
  EXPECT_EQ(compute_advantages(batch, "opo", "verl").advantage, (std::vector<float>{0.5f, 0.5f}));
}

TEST(opo_method, empty_responses_weigh_nothing) {
  Batch batch = group_of({1, 0, -1}, {2, 2, 0});
  EXPECT_EQ(per_response(batch, compute_advantages(batch, "opo")), (std::vector<float>{0.5f, -0.5f}));
}

}  // namespace
}  // namespace ucas

#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace ucas {

using Four = std::array<uint32_t, 4>;

// Known answers of the authors' Random123 distribution (kat_vectors, philox4x32 10 rounds).
TEST(rng, philox_gives_the_published_answers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(rng, a_draw_depends_on_every_part_of_its_key_and_on_nothing_else) {
  SampleKey key{7, 1, 2, 3, 4};
  double first = uniform(key);
  EXPECT_EQ(first, uniform(key));
  std::set<double> draws = {first};
  for (int part = 0; part < 5; ++part) {
    SampleKey other = key;
    if (part == 0) other.seed += uint64_t{1} << 40;
    if (part == 1) ++other.step;
    if (part == 2) ++other.problem;
    if (part == 3) ++other.response;
    if (part == 4) ++other.position;
    draws.insert(uniform(other));
  }
  EXPECT_EQ(draws.size(), 6u);
}

// Chi-square over 100 bins, 99 degrees of freedom: mean 99, deviation 14; 170 is five deviations off.
TEST(rng, sampling_draws_are_uniform_along_each_part_of_the_key) {
  for (int part = 0; part < 4; ++part) {
    std::array<int, 100> bins{};
    const int n = 100000;
    for (uint32_t i = 0; i < n; ++i) {
      SampleKey key{42, 0, 0, 0, 0};
      (part == 0 ? key.position : part == 1 ? key.response : part == 2 ? key.problem : key.step) = i;
      double u = uniform(key);
      ASSERT_GE(u, 0.0);
      ASSERT_LT(u, 1.0);
      ++bins[static_cast<size_t>(u * 100)];
    }
    double chi = 0;
    for (int count : bins) chi += std::pow(count - n / 100.0, 2) / (n / 100.0);
    EXPECT_LT(chi, 170) << "part " << part;
    EXPECT_GT(chi, 45) << "part " << part;
  }
}

TEST(rng, streams_of_one_seed_differ_and_repeat) {
  Rng a(5, 1), same(5, 1), other(5, 2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    uint32_t number = a.next();
    EXPECT_EQ(number, same.next());
    differs |= number != other.next();
  }
  EXPECT_TRUE(differs);
}

TEST(rng, below_is_uniform_for_ranges_that_do_not_divide) {
  Rng rng(1, 1);
  std::array<int, 7> bins{};
  for (int i = 0; i < 70000; ++i) {
    int64_t n = rng.below(7);
    ASSERT_GE(n, 0);
    ASSERT_LT(n, 7);
    ++bins[static_cast<size_t>(n)];
  }
  for (int count : bins) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(rng.below(1), 0);
}

TEST(rng, normal_has_its_moments) {
  Rng rng(3, 9);
  double sum = 0, squares = 0, cubes = 0;
  const int n = 200000;
  for (int i = 0; i < n; ++i) {
    double x = rng.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    cubes += x * x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(cubes / n, 0, 0.05);
}

TEST(rng, an_epoch_visits_everything_once_in_its_own_order) {
  auto first = epoch_order(1, 0, 1000), again = epoch_order(1, 0, 1000);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, epoch_order(1, 1, 1000));
  EXPECT_NE(first, epoch_order(2, 0, 1000));
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], static_cast<int64_t>(i));
  EXPECT_TRUE(epoch_order(1, 0, 0).empty());
  // Each problem is first about equally often.
  std::array<int, 5> leads{};
  for (int64_t epoch = 0; epoch < 5000; ++epoch) ++leads[static_cast<size_t>(epoch_order(9, epoch, 5)[0])];
  for (int count : leads) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace ucas

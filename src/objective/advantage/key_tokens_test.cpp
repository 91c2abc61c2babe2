#include "objective/advantage/key_tokens.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace ucas {
namespace {

TEST(fisher, known_tables) {
  EXPECT_NEAR(fisher_two_sided({3, 1, 1, 3}), 0.4857142857, 1e-10);  // Fisher's tea
  EXPECT_NEAR(fisher_two_sided({8, 2, 1, 5}), 0.0349650350, 1e-10);
  EXPECT_NEAR(fisher_two_sided({0, 2, 3, 0}), 0.1, 1e-12);
  EXPECT_NEAR(table_probability({1, 1, 2, 1}), 0.6, 1e-12);
  EXPECT_NEAR(table_probability({3, 1, 1, 3}), 16.0 / 70, 1e-12);
}

TEST(fisher, equally_probable_tables_count_whatever_their_last_bits) {
  // All tables of up to 16 rows against integer arithmetic: p_k is a multiple of 1 / C(N, with).
  auto choose = [](int64_t n, int64_t k) {
    int64_t value = 1;
    for (int64_t i = 1; i <= k; ++i) value = value * (n - k + i) / i;
    return value;
  };
  int sure = 0;
  for (int64_t right = 1; right < 16; ++right) {
    int64_t wrong = 16 - right;
    for (int64_t a = 0; a <= right; ++a) {
      for (int64_t b = 0; b <= wrong; ++b) {
        auto ways = [&](int64_t k) { return choose(right, k) * choose(wrong, a + b - k); };
        int64_t sum = 0;
        for (int64_t k = std::max<int64_t>(0, a + b - wrong); k <= std::min(right, a + b); ++k) {
          if (ways(k) <= ways(a)) sum += ways(k);
        }
        double expected = static_cast<double>(sum) / static_cast<double>(choose(16, a + b));
        double p = fisher_two_sided({a, b, right - a, wrong - b});
        ASSERT_NEAR(p, expected, 1e-12) << a << " " << b << " of " << right << " " << wrong;
        sure += expected == 1;
      }
    }
  }
  EXPECT_GT(sure, 200);
}

TEST(fisher, swapping_sides_or_rows_changes_nothing) {
  EXPECT_TRUE(rc::check("symmetric", [] {
    auto count = [] { return *rc::gen::inRange<int64_t>(0, 200); };
    ContingencyTable t{count(), count(), count(), count()};
    double p = fisher_two_sided(t);
    RC_ASSERT(p >= 0 && p <= 1);
    RC_ASSERT(std::fabs(p - fisher_two_sided({t.b, t.a, t.d, t.c})) <= 1e-9);
    RC_ASSERT(std::fabs(p - fisher_two_sided({t.c, t.d, t.a, t.b})) <= 1e-9);
    RC_ASSERT(p >= table_probability(t) * (1 - 1e-9));
  }));
}

}  // namespace
}  // namespace ucas

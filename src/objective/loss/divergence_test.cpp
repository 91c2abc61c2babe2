#include "objective/loss/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace ucas {
namespace {

std::vector<float> logs(const std::vector<double>& p) {
  std::vector<float> out;
  for (double x : p) out.push_back(static_cast<float>(std::log(x)));
  return out;
}

TEST(divergence, by_hand) {
  const std::vector<float> mu = logs({0.5, 0.25}), pi = logs({0.25, 0.375});  // and 0.25 against 0.375
  EXPECT_NEAR(cell_divergence(Divergence::tv, mu, pi), 0.25, 1e-7);
  EXPECT_NEAR(cell_divergence(Divergence::kl, mu, pi), 0.5 * std::log(2) - 0.5 * std::log(1.5), 1e-7);
  EXPECT_EQ(cell_divergence(Divergence::kl, mu, mu), 0);
  EXPECT_EQ(cell_divergence(Divergence::tv, mu, mu), 0);
}

TEST(divergence, one_cell_is_the_pair_of_a_token_and_any_other) {
  for (Divergence kind : {Divergence::tv, Divergence::kl}) {
    const std::vector<float> mu = logs({0.3}), pi = logs({0.45});
    EXPECT_NEAR(cell_divergence(kind, mu, pi), token_divergence(kind, mu[0], pi[0]), 1e-7);
  }
}

// A token that one distribution is certain of, or that the other has never: finite for TV, infinite for KL only where
// pi is 0.
TEST(divergence, certain_and_impossible_tokens) {
  const float never = -std::numeric_limits<float>::infinity();
  EXPECT_NEAR(cell_divergence(Divergence::tv, std::vector{0.0f}, std::vector{never}), 1, 1e-9);
  EXPECT_EQ(cell_divergence(Divergence::kl, std::vector{0.0f}, std::vector{never}), HUGE_VAL);
  EXPECT_NEAR(cell_divergence(Divergence::kl, std::vector{never}, std::vector{std::log(0.5f)}), std::log(2), 1e-6);
  EXPECT_TRUE(std::isnan(cell_divergence(Divergence::tv, std::vector{std::nanf("")}, std::vector{0.0f})));
  EXPECT_TRUE(std::isnan(cell_divergence(Divergence::kl, std::vector{-1.0f}, std::vector{std::nanf("")})));
}

// Every cell more brings it closer to that of the whole distribution, from below.
TEST(divergence, more_tokens_never_make_it_smaller) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed, 1);
    constexpr size_t V = 12;
    std::vector<double> m(V), p(V);
    double m_sum = 0, p_sum = 0;
    for (size_t v = 0; v < V; ++v) {
      m_sum += m[v] = std::exp(1.5 * rng.normal());
      p_sum += p[v] = m[v] * std::exp(0.5 * rng.normal());
    }
    double tv = 0, kl = 0;
    for (size_t v = 0; v < V; ++v) {
      m[v] /= m_sum, p[v] /= p_sum;
      tv += std::fabs(p[v] - m[v]) / 2;
      kl += m[v] * std::log(m[v] / p[v]);
    }
    const std::vector<float> mu = logs(m), pi = logs(p);
    double tv_before = 0, kl_before = 0;
    for (size_t k = 1; k <= V; ++k) {
      const double tv_now = cell_divergence(Divergence::tv, {mu.data(), k}, {pi.data(), k});
      const double kl_now = cell_divergence(Divergence::kl, {mu.data(), k}, {pi.data(), k});
      EXPECT_GE(tv_now, tv_before - 2e-7);
      EXPECT_GE(kl_now, kl_before - 2e-6);
      tv_before = tv_now, kl_before = kl_now;
    }
    EXPECT_NEAR(tv_before, tv, 1e-6);
    EXPECT_NEAR(kl_before, kl, 1e-5);
  }
}

}  // namespace
}  // namespace ucas

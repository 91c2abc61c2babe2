#include "results/stats/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "base/text/json.h"

namespace ucas {
namespace {

TEST(pass_at_k, agrees_with_exact_fractions) {
  Json goldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  ASSERT_GT(goldens.at("pass_at_k").size(), 50u);
  for (const Json& row : goldens.at("pass_at_k")) {
    EXPECT_NEAR(pass_at_k({row.at("n"), row.at("c")}, row.at("k")), row.at("value").get<double>(), 1e-12) << row.dump();
  }
}

TEST(pass_at_k, grows_with_k_and_with_right_samples) {
  for (int64_t c = 0; c <= 20; ++c) {
    for (int64_t k = 1; k < 20; ++k) {
      EXPECT_LE(pass_at_k({20, c}, k), pass_at_k({20, c}, k + 1));
      EXPECT_LE(pass_at_k({20, c}, k), pass_at_k({20, std::min<int64_t>(c + 1, 20)}, k));
    }
    EXPECT_NEAR(pass_at_k({20, c}, 1), mean_at_n({20, c}), 1e-15);
  }
}

TEST(majority_vote, the_largest_class_wins_and_ties_go_to_the_earliest) {
  auto winner = [](std::vector<int32_t> classes) { return majority(classes); };
  EXPECT_EQ(winner({2, 0, 0, 1}), 1u);
  EXPECT_EQ(winner({2, 0, 0, 2}), 0u);
  EXPECT_EQ(winner({0, 1, 1, 1, 0}), 1u);
  EXPECT_EQ(winner({-1, -1, -1, 5}), 3u);  // the unparseable do not vote
  EXPECT_EQ(winner({-1, -1}), std::nullopt);
  EXPECT_EQ(winner({}), std::nullopt);
}

// All ways to choose n - k of the base's n samples, one after the other.
TEST(samples, the_frontier_is_the_mean_over_all_ways_to_choose_the_samples_that_look) {
  for (int64_t n = 2; n <= 7; ++n) {
    for (int64_t c = 0; c <= n; ++c) {
      for (int64_t k = 1; k < n; ++k) {
        double unsolved = 0, again = 0, ways = 0;
        for (uint32_t chosen = 0; chosen < (1u << n); ++chosen) {
          if (std::popcount(chosen) != n - k) continue;
          const uint32_t right = (1u << c) - 1;
          ways += 1;
          unsolved += (chosen & right) == 0;
          again += (chosen & right) == 0 && (~chosen & right) != 0;
        }
        const SampleCount base{n, c}, model{9, 4};
        EXPECT_NEAR(frontier_at_k(base, model, k), unsolved / ways * pass_at_k(model, k), 1e-12);
        EXPECT_NEAR(frontier_of_base(base, k), again / ways, 1e-12) << n << " " << c << " " << k;
      }
    }
  }
}

// p = 1/1000: by the old definition, marks by all 1,024 samples and the base's row exactly 0, a copy of the base was
// 8 points of every such problem beyond it.
TEST(samples, a_model_that_is_the_base_has_the_frontier_of_its_control) {
  Rng rng(7, 1);
  const double p = 1.0 / 1000;
  const auto sampled = [&](int64_t n) {
    SampleCount count{n, 0};
    for (int64_t i = 0; i < n; ++i) count.c += rng.uniform() < p;
    return count;
  };
  double model = 0, control = 0;
  constexpr int kProblems = 4000;
  for (int i = 0; i < kProblems; ++i) {
    const SampleCount base = sampled(1024);
    model += frontier_at_k(base, sampled(256), 256) / kProblems;
    control += frontier_of_base(base, 256) / kProblems;
  }
  const double expected = std::pow(1 - p, 768) * (1 - std::pow(1 - p, 256));
  EXPECT_NEAR(model, expected, 0.02);
  EXPECT_NEAR(control, expected, 0.02);
  EXPECT_GT(expected, 0.1);
}

TEST(cover, counts_a_problem_from_its_threshold_on) {
  EXPECT_TRUE(covers({16, 8}, 0.5));
  EXPECT_FALSE(covers({16, 7}, 0.5));
  EXPECT_TRUE(covers({10, 1}, 0.1));
  EXPECT_FALSE(covers({10, 9}, 1));
}

TEST(ranking, agrees_with_scipy) {
  const Json goldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/stats.json", 1 << 20);
  for (const Json& row : goldens.at("calibration")) {
    std::vector<bool> right;
    for (int r : row.at("right")) right.push_back(r == 1);
    EXPECT_NEAR(auroc(row.at("p").get<std::vector<double>>(), right), row.at("auroc").get<double>(), 1e-12);
  }
}

TEST(ranking, of_a_perfect_order_a_reversed_one_and_none_at_all) {
  std::vector<bool> right = {false, false, true, true};
  EXPECT_EQ(auroc(std::vector<double>{1, 2, 3, 4}, right), 1.0);
  EXPECT_EQ(auroc(std::vector<double>{4, 3, 2, 1}, right), 0.0);
  EXPECT_EQ(auroc(std::vector<double>{7, 7, 7, 7}, right), 0.5);
  EXPECT_TRUE(std::isnan(auroc(std::vector<double>{1, 2}, {true, true})));
}

}  // namespace
}  // namespace ucas

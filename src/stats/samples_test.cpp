#include "stats/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"

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

}  // namespace
}  // namespace ucas

// GDPO: parts of a reward that a sum would drown or confuse.
#include <gtest/gtest.h>

#include <cmath>

#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::compute_advantages;
using testing::per_response;

// One prompt of responses of one token; `parts` by response.
Batch parted(const std::vector<std::vector<float>>& parts, double weight = 1) {
  std::vector<float> rewards;
  for (const auto& of : parts) rewards.push_back(of[0] + static_cast<float>(weight) * of[1]);
  Batch batch = testing::group_of(rewards, std::vector<size_t>(parts.size(), 1));
  batch.reward_terms = {{"right", 1}, {"form", weight}};
  for (size_t i = 0; i < parts.size(); ++i) batch.responses[i].terms = parts[i];
  return batch;
}

const Setting kRaw{"batch_norm", std::string("off"), "test", false};

// Right 1, 0, 0, 0 and form 0, 1, 1, 1: their sum is 1 for all, which GRPO learns nothing from.
TEST(gdpo_method, parts_that_add_up_to_the_same_are_not_the_same) {
  Batch batch = parted({{1, 0}, {0, 1}, {0, 1}, {0, 1}});
  EXPECT_EQ(compute_advantages(batch, "grpo").advantage, (std::vector<float>{0, 0, 0, 0}));
  Batch better = parted({{1, 1}, {0, 1}, {0, 0}, {0, 0}});
  std::vector<float> A = per_response(better, compute_advantages(better, "gdpo"));
  EXPECT_GT(A[0], A[1]);
  EXPECT_GT(A[1], A[2]);
}

// z of right is 1.5, -0.5, -0.5, -0.5, of form +-sqrt(3)/2, both over G - 1.
TEST(gdpo_method, a_group_worked_by_hand) {
  const std::vector<std::vector<float>> parts = {{1, 0.25f}, {0, 0.25f}, {0, 0}, {0, 0}};
  Batch batch = parted(parts);
  Setting exact{"eps", 0.0, "test", false};
  const double h = std::sqrt(3) / 2;
  const std::vector<double> S = {1.5 + h, -0.5 + h, -0.5 - h, -0.5 - h};
  std::vector<float> raw = compute_advantages(batch, "gdpo", "", {exact, kRaw}).advantage;
  for (size_t i = 0; i < S.size(); ++i) EXPECT_NEAR(raw[i], S[i], 1e-6);
  double squares = 0;
  for (double s : S) squares += s * s;
  std::vector<float> A = compute_advantages(batch, "gdpo", "", {exact}).advantage;
  for (size_t i = 0; i < S.size(); ++i) EXPECT_NEAR(A[i], S[i] / std::sqrt(squares / 3), 1e-6);
  std::vector<float> half = compute_advantages(parted(parts, 0.5), "gdpo", "", {exact, kRaw}).advantage;
  EXPECT_NEAR(half[0], 1.5 + h / 2, 1e-6);
}

// A scale inside a part is gone with its deviation.
TEST(gdpo_method, a_part_s_scale_in_the_reward_changes_nothing_but_through_eps) {
  Setting exact{"eps", 0.0, "test", false};
  std::vector<float> small =
      compute_advantages(parted({{1, 0.01f}, {0, 0.02f}, {0, 0}}), "gdpo", "", {exact}).advantage;
  std::vector<float> large = compute_advantages(parted({{1, 1}, {0, 2}, {0, 0}}), "gdpo", "", {exact}).advantage;
  for (size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], large[i], 1e-6);
}

TEST(gdpo_method, the_size_does_not_grow_with_the_number_of_parts) {
  Batch batch = parted({{1, 1}, {0, 0}, {1, 1}, {0, 0}});
  Batch alone = batch;
  alone.reward_terms.clear();
  std::vector<float> two = compute_advantages(batch, "gdpo").advantage,
                     one = compute_advantages(alone, "gdpo").advantage;
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-3);
}

TEST(gdpo_method, verl_s_form_whitens_tokens_so_long_responses_shift_the_zero) {
  Batch batch = testing::group_of({1, 0}, {3, 1});
  std::vector<float> A = compute_advantages(batch, "gdpo", "verl").advantage;
  EXPECT_NEAR(A[0] * 3 + A[3], 0, 1e-5);
  EXPECT_NE(A[0], -A[3]);
}

TEST(gdpo_method, a_reward_of_one_part_is_the_reward_with_its_shaping) {
  Batch batch = testing::group_of({1, 0.25f, 0}, {1, 1, 1}), bare = batch;
  batch.reward_terms = {{"right", 0.5}};
  for (Response& o : batch.responses) o.terms = {9};  // its score is in the reward
  EXPECT_EQ(compute_advantages(batch, "gdpo").advantage, compute_advantages(bare, "gdpo").advantage);
}

}  // namespace
}  // namespace ucas

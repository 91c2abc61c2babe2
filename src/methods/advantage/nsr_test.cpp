// Negative-sample reinforcement and its two halves.
#include <gtest/gtest.h>

#include "base/error.h"
#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::compute_advantages;
using testing::number;

// Two right and two wrong responses, and a prompt that all answer wrongly.
Batch judged() {
  Batch batch = testing::make_batch(
      {{0, 1, {1, 1}, {1, 2}}, {0, -1, {1}, {1}}, {0, 1, {1}, {1}}, {0, -1, {1}, {1}}, {1, -1, {1}, {1}}});
  for (Response& o : batch.responses) {
    o.verdict.decide(o.reward > 0 ? VerdictKind::equal : VerdictKind::unequal, "test");
  }
  return batch;
}

TEST(nsr_method, right_responses_count_a_tenth_of_wrong_ones) {
  EXPECT_EQ(compute_advantages(judged(), "nsr").advantage, (std::vector<float>{0.1f, 0.1f, -1, 0.1f, -1, -1}));
  EXPECT_EQ(compute_advantages(judged(), "nsr", "", {number("lambda_pos", 0.5)}).advantage,
            (std::vector<float>{0.5f, 0.5f, -1, 0.5f, -1, -1}));
}

TEST(nsr_method, each_half_leaves_the_other_alone) {
  EXPECT_EQ(compute_advantages(judged(), "nsr", "nsr").advantage, (std::vector<float>{0, 0, -1, 0, -1, -1}));
  EXPECT_EQ(compute_advantages(judged(), "nsr", "psr").advantage, (std::vector<float>{1, 1, 0, 1, 0, 0}));
}

TEST(nsr_method, shaping_of_the_reward_changes_nothing) {
  Batch batch = judged();
  for (Response& o : batch.responses) o.reward = 0.3f * static_cast<float>(o.sample);
  EXPECT_EQ(compute_advantages(batch, "nsr").advantage, compute_advantages(judged(), "nsr").advantage);
}

TEST(nsr_method, its_loss_is_the_plain_clip_over_all_groups) {
  for (const char* preset : {"w_reinforce", "nsr", "psr"}) {
    ObjectiveConfig objective = make_method("nsr", preset)->objective_defaults();
    EXPECT_EQ(objective.clip_low, 0.2);
    EXPECT_EQ(objective.clip_high, 0.2);
    EXPECT_EQ(objective.dual_clip, 0);
    EXPECT_EQ(objective.aggregation, Aggregation::token_mean);
    EXPECT_EQ(objective.entropy_coeff, 0);
    EXPECT_FALSE(objective.keep_mixed_groups);
  }
}

TEST(nsr_method, both_halves_off_is_refused) {
  try {
    compute_advantages(judged(), "nsr", "nsr", {number("lambda_neg", 0)});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "config");
    EXPECT_NE(std::string(error.what()).find("method.lambda_neg = 0"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ucas

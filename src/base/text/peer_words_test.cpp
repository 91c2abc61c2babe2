#include "base/text/peer_words.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

TEST(peer_words, an_option_of_trl_or_verl_is_known_by_the_last_part_of_its_name) {
  const std::vector<std::string> train = {"rollout.n", "optimizer.lr", "objective.kl_coeff"};
  EXPECT_EQ(peer_option("num_generations", train), "rollout.n");
  EXPECT_EQ(peer_option("num-generations", train), "rollout.n");
  EXPECT_EQ(peer_option("learning_rate", train), "optimizer.lr");
  EXPECT_EQ(peer_option("algorithm.kl_ctrl.kl_coef", train), "objective.kl_coeff");
  EXPECT_EQ(peer_option("num_generations", {"samples"}), "samples");
  EXPECT_EQ(peer_option("num_generations", {"out"}), "") << "no such option of this command";
  EXPECT_EQ(peer_option("something", train), "");
}

TEST(peer_words, a_value_of_theirs_and_one_in_capitals) {
  EXPECT_EQ(peer_value("bfloat16", {"f32", "bf16"}), "bf16");
  EXPECT_EQ(peer_value("FP32", {"f32", "bf16"}), "f32");
  EXPECT_EQ(peer_value("GRPO", {"grpo", "dapo"}), "grpo");
  EXPECT_EQ(peer_value("grp", {"grpo", "dapo"}), "");
}

}  // namespace
}  // namespace ucas

#include "base/text/renamed_keys.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text/fields.h"

namespace ucas {

namespace {

struct Options {
  bool carry_over = false;
  int64_t off_policy_steps = 0;
  std::string correct_by = "whole";
  void fields(Fields& f) {
    f.field("rollout.carry_over", carry_over, "");
    f.field("rollout.off_policy_steps", off_policy_steps, "");
    f.field("objective.correct_by", correct_by, "");
  }
};

std::string refusal_of_words(const std::vector<std::string>& words) {
  try {
    Options options;
    ucas::apply(options, parse_command_line(words, {}).settings);
  } catch (const Error& error) {
    return error.word() + ": " + error.what();
  }
  return "";
}

}  // namespace

TEST(renamed_keys, a_file_of_before_is_read_under_the_new_names) {
  Options options;
  ucas::apply(options, parse_toml("rollout.surplus = \"carry\"\nrollout.lag = 1\n[objective]\ncorrect_by = \"drawn\"\n",
                                  "run.toml"));
  EXPECT_TRUE(options.carry_over);
  EXPECT_EQ(options.off_policy_steps, 1);
  EXPECT_EQ(options.correct_by, "sampled");
  ucas::apply(options, parse_toml("rollout.surplus = \"drop\"\n", "run.toml"));
  EXPECT_FALSE(options.carry_over);
}

TEST(renamed_keys, an_old_option_on_the_command_line_is_refused_naming_the_new_one) {
  EXPECT_EQ(refusal_of_words({"--rollout.surplus", "carry"}),
            "config: --rollout.surplus: renamed: write --rollout.carry_over true");
  EXPECT_EQ(refusal_of_words({"--rollout.lag", "1"}),
            "config: --rollout.lag: renamed: write --rollout.off_policy_steps");
}

TEST(renamed_keys, a_key_in_a_longer_one_is_renamed_and_another_word_is_not) {
  EXPECT_EQ(renamed_option("run.a.rollout.lag", "1")->key, "run.a.rollout.off_policy_steps");
  EXPECT_FALSE(renamed_option("xrollout.lag", "1"));
  EXPECT_FALSE(renamed_option("rollout.surplus", "other"));
  EXPECT_FALSE(renamed_option("rollout.n", "1"));
}

TEST(renamed_keys, a_value_that_was_removed_names_what_replaced_it) {
  EXPECT_TRUE(removed_value("update.reduce", "ordered").starts_with("micro: "));
  EXPECT_EQ(removed_value("update.reduce", "sum"), "");
  EXPECT_EQ(removed_value("reduce", "ordered"), "");
}

TEST(renamed_keys, lines_of_a_fingerprint_and_metrics_are_read_under_the_new_names) {
  EXPECT_EQ(renamed_line("rollout.surplus = \"drop\""), "rollout.carry_over = false");
  EXPECT_EQ(renamed_line("data.draw = \"difficulty\""), "data.order = \"difficulty\"");
  EXPECT_EQ(renamed_line("objective.correct_by = \"drawn\""), "objective.correct_by = \"sampled\"");
  EXPECT_EQ(renamed_line("rollout.lag = 0"), "rollout.off_policy_steps = 0");
  EXPECT_EQ(renamed_line("seed = 3"), "seed = 3");
  EXPECT_EQ(renamed_metric("train/prompts_rested"), "train/prompts_in_cooldown");
  EXPECT_EQ(renamed_metric("actor/entropy"), "actor/entropy");
}

}  // namespace ucas

// What TRL's and verl's own reward functions give (tests/goldens/rewards.json, by tools/make_reward_goldens.py), next
// to what the same settings give here. Every difference is named in the goldens, with its reason.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/str.h"
#include "objective/filter/dynamic_sampling.h"
#include "text/split/splitter.h"
#include "verify/registry.h"

namespace ucas {
namespace {

const nlohmann::json& peers() {
  static const nlohmann::json kPeers =
      nlohmann::json::parse(read_file(str(UCAS_SOURCE_DIR, "/tests/goldens/rewards.json")));
  return kPeers;
}

bool rewards(Extract extract, const nlohmann::json& row) {
  const std::vector<std::string> gold = {row["gold"]};
  const std::string response = row["response"];
  const Answer answer{response, &gold};
  return make_grader(GraderKind::math, {extract})->grade({&answer, 1}).front().kind == VerdictKind::equal;
}

TEST(peer_rewards, the_overlong_penalty_is_that_of_verl_and_of_trl_at_every_length_up_to_the_limit) {
  size_t compared = 0;
  for (const auto& row : peers()["overlong"]) {
    for (size_t i = 0; i < row["length"].size(); ++i) {
      const double ours = overlong_penalty(row["length"][i], row["limit"], row["buffer"], row["factor"]);
      EXPECT_NEAR(ours, row["verl"][i].get<double>(), 1e-7) << row["length"][i];  // a float there
      if (row.contains("trl")) {
        EXPECT_DOUBLE_EQ(ours, row["trl"][i].get<double>()) << row["length"][i];
      }
      ++compared;
    }
  }
  EXPECT_GE(compared, 30u);
}

TEST(peer_rewards, a_pattern_for_reward_format_pays_what_trl_think_format_reward_pays) {
  const Regex pattern(R"(\A(?m:<think>(?!.*<think>).*?</think>.*)\z)",
                      "reward.format");  // as train/collect/reward.cpp holds it
  size_t rewarded = 0;
  for (const auto& row : peers()["format"]) {
    const std::string text = row["text"];
    EXPECT_EQ(pattern.find(text, 0).has_value(), row["trl"] == 1.0) << text;
    rewarded += row["trl"] == 1.0;
  }
  EXPECT_GE(rewarded, 5u);
}

TEST(peer_rewards, mathematics_is_paid_as_by_verl_but_for_equal_values_that_are_written_otherwise) {
  size_t same = 0, rewarded = 0;
  for (const auto& row : peers()["math"]) {
    const bool differs = row["differs"] != "";
    EXPECT_EQ(rewards(Extract::strict, row), (row["verl"] == 1.0) != differs) << row;
    EXPECT_FALSE(differs && row["verl"] == 1.0) << "verl rewards nothing that is refused here: " << row;
    same += !differs;
    rewarded += row["verl"] == 1.0;
  }
  EXPECT_GE(same, 25u);
  EXPECT_GE(rewarded, 15u);
}

TEST(peer_rewards, gsm8k_read_leniently_is_paid_wherever_one_of_verls_two_forms_pays) {
  for (const auto& row : peers()["gsm8k"]) {
    const bool rewarded = row["strict"] == 1.0 || row["flexible"] == 1.0, differs = row["differs"] != "";
    EXPECT_EQ(rewards(Extract::lenient, row), rewarded != differs) << row;
  }
}

}  // namespace
}  // namespace ucas

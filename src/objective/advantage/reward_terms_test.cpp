#include "objective/advantage/reward_terms.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

TEST(reward_terms, weights_are_read_in_their_order_and_what_is_none_is_refused) {
  const std::vector<WeightedPart> parts = parse_reward_weights({"format=0.25", "answer=1", "length=-1e-1"}, false);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].part, RewardPart::format);
  EXPECT_EQ(parts[2].weight, -0.1);
  EXPECT_EQ(reward_terms(parts)[1].name, "answer");
  EXPECT_EQ(parse_reward_weights({}, false)[0].part, RewardPart::answer);
  EXPECT_EQ(parse_reward_weights({}, true)[0].part, RewardPart::command);
  for (const char* wrong :
       {"", "answer", "answer=", "answer=x", "answer=0", "answer=inf", "answr=1", "=1", "answer=1 "}) {
    EXPECT_THROW(parse_reward_weights({wrong}, false), Error) << wrong;
  }
  EXPECT_THROW(parse_reward_weights({"answer=1", "answer=2"}, false), Error);
}

// By hand: lengths 10, 20, 30; lambda = 0.5, 0, -0.5.
TEST(reward_terms, the_shortest_right_response_earns_most_and_no_wrong_one_earns_by_length) {
  EXPECT_EQ(length_rewards(std::vector<int64_t>{10, 20, 30}, std::vector<uint8_t>{1, 1, 1}),
            (std::vector<double>{0.5, 0, -0.5}));
  EXPECT_EQ(length_rewards(std::vector<int64_t>{10, 20, 30}, std::vector<uint8_t>{0, 1, 0}),
            (std::vector<double>{0, 0, -0.5}));
  EXPECT_EQ(length_rewards(std::vector<int64_t>{7, 7}, std::vector<uint8_t>{1, 0}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(length_rewards({}, {}).empty());
}

}  // namespace
}  // namespace ucas

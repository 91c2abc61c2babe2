#include "rollout/environment/environment.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

std::string said_to(const std::string& turn) {
  const auto calculator = row_of_calculator().make();
  calculator->reset({});
  return calculator->step(turn).value_or("done");
}

TEST(calculator, evaluates_exactly_and_says_what_is_wrong) {
  EXPECT_EQ(said_to("So <calc>12*34</calc>"), "<result>408</result>");
  EXPECT_EQ(said_to("<calc>(1 + 2) * 3 - 10</calc>"), "<result>-1</result>");
  EXPECT_EQ(said_to("<calc>7/2</calc>"), "<result>7/2</result>");
  EXPECT_EQ(said_to("<calc>1/3 + 1/6 + 1/2</calc>"), "<result>1</result>");
  EXPECT_EQ(said_to("<calc>3</calc> no: <calc>4+4</calc>"), "<result>8</result>") << "the last call counts";
  EXPECT_EQ(said_to("<calc>1/(2-2)</calc>"), "<result>error: divides by zero</result>");
  EXPECT_EQ(said_to("<calc>2^10</calc>"), "<result>error: not an arithmetic expression</result>");
  EXPECT_EQ(said_to("<calc></calc>"), "<result>error: not an arithmetic expression</result>");
  EXPECT_EQ(said_to("<calc>" + std::string(600, '1') + "</calc>"), "<result>error: too long</result>");
  EXPECT_EQ(said_to("12*34</calc>"), "<result>error: no <calc></result>");
  EXPECT_EQ(said_to("The answer is 7."), "done");
}

TEST(calculator, says_only_what_its_row_promises) {
  const std::string promised = row_of_calculator().says;
  for (const char* turn : {"<calc>1/3-7</calc>", "</calc>", "<calc>(</calc>", "<calc>9999999999</calc>",
                           "<calc>01</calc>", "<calc>1/0</calc>"}) {
    for (char c : said_to(turn)) EXPECT_NE(promised.find(c), std::string::npos) << turn << ": " << c;
  }
}

}  // namespace
}  // namespace ucas

#include "verify/text/letter.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

TEST(choice_letter, is_looked_for_in_the_last_box_then_after_the_last_answer_then_anywhere) {
  EXPECT_EQ(choice_letter("Let A be a set. The value is \\boxed{C}."), 'C');
  EXPECT_EQ(choice_letter("\\boxed{A}, no: \\boxed{\\text{(B) } 4}"), 'B');
  EXPECT_EQ(choice_letter("\\boxed{4}. Of A and B the answer is (B)"), 'B');
  EXPECT_EQ(choice_letter("Answer: D"), 'D');
  EXPECT_EQ(choice_letter(" C"), 'C');
  EXPECT_EQ(choice_letter("A cat, I think"), std::nullopt);
  EXPECT_EQ(choice_letter("\\boxed{"), std::nullopt);
  EXPECT_EQ(choice_letter(""), std::nullopt);
}

TEST(choice_letter, denied_or_offered_with_another_is_none) {
  EXPECT_EQ(choice_letter("\\boxed{A or B}"), std::nullopt);
  EXPECT_EQ(choice_letter("Of C and D: \\boxed{\\text{not B}}"), std::nullopt);
  EXPECT_EQ(choice_letter("The answer is all except B"), std::nullopt);
  EXPECT_EQ(choice_letter("Answer: neither B nor C"), std::nullopt);
  EXPECT_EQ(choice_letter("The answer is not B but C"), std::nullopt);
  EXPECT_EQ(choice_letter("The answer isn't B. It is D"), 'D');
  EXPECT_EQ(choice_letter("Answer: A and B"), std::nullopt);
  EXPECT_EQ(choice_letter("The answer is A and that is all"), 'A');
}

}  // namespace
}  // namespace ucas

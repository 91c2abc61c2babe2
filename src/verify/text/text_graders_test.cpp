#include "verify/text/text_graders.h"

#include <gtest/gtest.h>

#include "verify/registry.h"

namespace ucas {

namespace {

VerdictKind graded(GraderKind grader, const std::string& gold, const std::string& response,
                   Extract extract = Extract::strict) {
  std::vector<std::string> alternatives = {gold};
  Answer answer{response, &alternatives};
  return make_grader(grader, extract)->grade({&answer, 1}).front().kind;
}

TEST(graders, read_inside_the_answer_tags_where_that_is_asked_for) {
  for (GraderKind grader : {GraderKind::math, GraderKind::numeric}) {
    EXPECT_EQ(graded(grader, "7", "\\boxed{8} <answer>\\boxed{7}</answer> \\boxed{8}", Extract::answer_tag),
              VerdictKind::equal);
    EXPECT_EQ(graded(grader, "7", "<answer>7</answer> \\boxed{7}", Extract::answer_tag), VerdictKind::unparseable);
  }
}

TEST(choice_letter, is_looked_for_in_the_last_box_then_after_the_last_answer_then_anywhere) {
  EXPECT_EQ(choice_letter("Let A be a set. The value is \\boxed{C}."), 'C');
  EXPECT_EQ(choice_letter("\\boxed{A}, no: \\boxed{\\text{(B) } 4}"), 'B');
  EXPECT_EQ(choice_letter("\\boxed{4}. Of A and B the answer is (B)"), 'B');
  EXPECT_EQ(choice_letter("Answer: D"), 'D');
  EXPECT_EQ(choice_letter(" C"), 'C');
  EXPECT_EQ(choice_letter("<think>\\boxed{A} or B</think> It is C"), 'C');
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
}

}  // namespace

}  // namespace ucas

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

bool released(const std::string& gold, const std::string& answer) {
  return graded(GraderKind::released_train, gold, answer, Extract::bare) == VerdictKind::equal;
}

bool numeric(const std::string& gold, const std::string& answer) {
  return graded(GraderKind::strict_numeric, gold, answer, Extract::bare) == VerdictKind::equal;
}

TEST(graders, read_inside_the_answer_tags_where_that_is_asked_for) {
  for (GraderKind grader : {GraderKind::math, GraderKind::released_train, GraderKind::strict_numeric}) {
    EXPECT_EQ(graded(grader, "7", "\\boxed{8} <answer>\\boxed{7}</answer> \\boxed{8}", Extract::answer_tag),
              VerdictKind::equal);
    EXPECT_EQ(graded(grader, "7", "<answer>7</answer> \\boxed{7}", Extract::answer_tag), VerdictKind::unparseable);
  }
}

TEST(verify_graders, the_released_reward_knows_spellings_of_one_fraction) {
  EXPECT_TRUE(released("\\frac{1}{2}", "\\frac12"));
  EXPECT_TRUE(released("\\frac{1}{2}", "1/2"));
  EXPECT_TRUE(released("\\frac{1}{2}", "0.5"));
  EXPECT_TRUE(released("\\frac{1}{2}", ".5"));
  EXPECT_TRUE(released("\\frac{1}{72}", "\\dfrac1{72}"));
  EXPECT_FALSE(released("\\frac{1}{2}", "2/4"));
  EXPECT_FALSE(released("\\frac{1}{4}", "0.25"));
}

TEST(verify_graders, the_released_reward_drops_units_degrees_and_a_short_name) {
  EXPECT_TRUE(released("5", "5\\text{ cm}"));
  EXPECT_TRUE(released("90", "90^\\circ"));
  EXPECT_TRUE(released("5", "x = 5"));
  EXPECT_TRUE(released("\\sqrt{3}", "\\sqrt3"));
  EXPECT_TRUE(released("(1,2)", "\\left( 1, 2 \\right)"));
  EXPECT_TRUE(released("$5$", "x=5"));
  EXPECT_FALSE(released("5", "abc = 5"));
  EXPECT_FALSE(released("5", "5.0"));
  EXPECT_FALSE(released("1008", "1,008"));
}

TEST(verify_graders, the_released_reward_falls_back_to_bytes_where_it_has_no_normal_form) {
  EXPECT_EQ(released_normal_form("5\\text{ cm}\\text{ or so}"), std::nullopt);
  EXPECT_EQ(released_normal_form("\\sqrt"), std::nullopt);
  EXPECT_TRUE(released("\\sqrt", "\\sqrt"));
  EXPECT_FALSE(released("\\frac12\\sqrt", "\\frac{1}{2}\\sqrt"));
}

TEST(verify_graders, the_released_reward_reads_the_last_box) {
  EXPECT_EQ(graded(GraderKind::released_train, "7", "\\boxed{6} or \\boxed{7}"), VerdictKind::equal);
  EXPECT_EQ(graded(GraderKind::released_train, "7", "\\fbox{7}"), VerdictKind::equal);
  EXPECT_EQ(graded(GraderKind::released_train, "7", "$\\boxed 7$ indeed"), VerdictKind::equal);
  EXPECT_EQ(graded(GraderKind::released_train, "7", "\\boxed{7"), VerdictKind::unparseable);
  EXPECT_EQ(graded(GraderKind::released_train, "7", "it is 7"), VerdictKind::unparseable);
}

TEST(verify_graders, strict_numeric_pays_for_plain_numbers_only) {
  EXPECT_TRUE(numeric("7", "7.0"));
  EXPECT_TRUE(numeric("1234567", "1,234,567.00"));
  EXPECT_TRUE(numeric("0", "-0.0"));
  EXPECT_TRUE(numeric("025", "25"));
  EXPECT_TRUE(numeric("0.5", ".5"));
  EXPECT_FALSE(numeric("0.5", "1/2"));
  EXPECT_FALSE(numeric("7", "-7"));
  EXPECT_FALSE(numeric("7", "7\\%"));
  EXPECT_FALSE(numeric("1/2", "1/2"));
}

TEST(verify_graders, strict_numeric_takes_commas_only_between_thousands) {
  EXPECT_EQ(plain_number("1,008"), "1008");
  EXPECT_EQ(plain_number("-1,000,000"), "-1000000");
  EXPECT_EQ(plain_number("1,2"), std::nullopt);
  EXPECT_EQ(plain_number("1234,567"), std::nullopt);
  EXPECT_EQ(plain_number("1,0000,000"), std::nullopt);
  EXPECT_EQ(plain_number(",123"), std::nullopt);
  EXPECT_EQ(plain_number("."), std::nullopt);
  EXPECT_EQ(plain_number("1e3"), std::nullopt);
}

TEST(verify_graders, equal_normal_forms_share_a_class) {
  std::unique_ptr<Grader> grader = make_grader(GraderKind::released_train);
  std::vector<std::string> gold = {"1"};
  std::vector<Answer> answers = {
      {"\\boxed{1/2}", &gold}, {"\\boxed{\\frac12}", &gold}, {"\\boxed{1}", &gold}, {"", &gold}, {"\\boxed{3}", &gold}};
  std::vector<Verdict> verdicts = grader->grade(answers);
  grader->classify(verdicts);
  std::vector<int32_t> classes;
  for (const Verdict& verdict : verdicts) classes.push_back(verdict.answer_class);
  EXPECT_EQ(classes, (std::vector<int32_t>{0, 0, 1, -1, 2}));
}

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
}

}  // namespace

}  // namespace ucas

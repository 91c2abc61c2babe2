#include "verify/registry.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

VerdictKind numeric_verdict(const std::string& response, const std::string& gold, double tolerance = 1e-4) {
  const std::vector<std::string> golds = {gold};
  const Answer answer{response, &golds};
  return make_grader(GraderKind::numeric, {Extract::bare, {}, tolerance})->grade({&answer, 1}).front().kind;
}

TEST(numeric_grader, a_number_within_the_tolerance_is_right_and_no_other_text_is) {
  EXPECT_EQ(numeric_verdict("3.14159", "3.1416"), VerdictKind::equal);
  EXPECT_EQ(numeric_verdict("3.14", "3.1416"), VerdictKind::unequal);
  EXPECT_EQ(numeric_verdict("3.14", "3.1416", 1e-3), VerdictKind::equal);
  EXPECT_EQ(numeric_verdict("6.0221e23", "602,210,000,000,000,000,000,000"), VerdictKind::equal);
  EXPECT_EQ(numeric_verdict("12.5\\%", "1/8"), VerdictKind::equal);
  EXPECT_EQ(numeric_verdict("$-0.5$", "-1/2"), VerdictKind::equal);
  EXPECT_EQ(numeric_verdict("0", "0"), VerdictKind::equal);
  EXPECT_EQ(numeric_verdict("1e-9", "0"), VerdictKind::unequal);  // relative to the greater of the two
  for (const char* none : {"", "NaN", "inf", "1e999", "1e99999999", "3 or 4", "1/0", "x", "0x10", "1e", "--1"}) {
    EXPECT_EQ(numeric_verdict(none, "3"), VerdictKind::unparseable) << none;
  }
}

TEST(numeric_grader, a_right_answer_that_is_no_number_is_refused_before_the_first_step) {
  const auto grader = make_grader(GraderKind::numeric);
  grader->check_gold({"1,234.5", "3/4", "12%"}, "a.jsonl:1");
  try {
    grader->check_gold({"x + 1"}, "a.jsonl:1");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "data_line");
    EXPECT_NE(std::string(error.what()).find("a.jsonl:1: the answer \"x + 1\" is no number"), std::string::npos);
  }
}

TEST(graders, each_data_source_has_its_own_or_the_standard_one) {
  const Graders graders = make_graders(GraderKind::math, parse_graders({"mmlu=letter", "a=b=numeric"}, "x"), {});
  const std::vector<std::string> gold = {"B"};
  const Answer answer{"The answer is B", &gold};
  EXPECT_EQ(graders.for_source("mmlu").grade({&answer, 1}).front().kind, VerdictKind::equal);
  EXPECT_EQ(graders.for_source("gsm8k").grade({&answer, 1}).front().kind, VerdictKind::unparseable);
  EXPECT_NE(&graders.for_source("a=b"), &graders.for_source("a"));
  for (const char* wrong : {"", "math", "=math", "x=", "x=none"}) {
    EXPECT_THROW(parse_graders({wrong}, "reward.graders"), Error) << wrong;
  }
  EXPECT_THROW(parse_graders({"x=math", "x=code"}, "reward.graders"), Error);
}

}  // namespace
}  // namespace ucas

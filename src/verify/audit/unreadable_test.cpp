#include "verify/audit/verify_rows.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

TEST(unreadable, says_the_share_three_examples_and_what_would_read_them) {
  const std::vector<std::string_view> texts = {"So the answer is 8.", "#### 8", "", "no number here", "**8**"};
  const std::string words = unreadable_in_words(0.975, 320, texts, GraderKind::math, Extract::strict, "--extract");
  EXPECT_NE(words.find("no answer was found in 97.5 % of 320 responses (--extract strict: the last \\boxed{})"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("3 of 5 of these hold one for --extract lenient"), std::string::npos) << words;
  EXPECT_NE(words.find("such as \"So the answer is 8.\", \"#### 8\", \"\" (empty)"), std::string::npos) << words;
  EXPECT_EQ(words.find('\n'), std::string::npos);
}

TEST(unreadable, where_nothing_else_would_read_them_nothing_is_proposed) {
  const std::vector<std::string_view> texts = {"I do not know"};
  const std::string words = unreadable_in_words(1, 1, texts, GraderKind::math, Extract::lenient, "--reward.extract");
  EXPECT_EQ(words.find("hold one"), std::string::npos) << words;
  const std::string code = unreadable_in_words(1, 1, texts, GraderKind::code, Extract::strict, "--extract");
  EXPECT_NE(code.find("(grader code)"), std::string::npos) << code;
}

TEST(unreadable, a_long_response_is_shown_by_its_end) {
  const std::string text = std::string(500, 'x') + " the end";
  const std::vector<std::string_view> texts = {text};
  const std::string words = unreadable_in_words(1, 1, texts, GraderKind::math, Extract::strict, "--extract");
  EXPECT_NE(words.find("\"..xxx"), std::string::npos) << words;
  EXPECT_NE(words.find(" the end\""), std::string::npos) << words;
}

}  // namespace
}  // namespace ucas

#include "data/contamination.h"

#include <gtest/gtest.h>

#include "base/str.h"

namespace ucas {
namespace {

std::vector<Problem> problems_of(const std::vector<std::string>& texts) {
  std::vector<Problem> out;
  for (const std::string& text : texts) {
    Problem problem;
    problem.id = str(out.size());
    problem.text = text;
    out.push_back(problem);
  }
  return out;
}

using WordList = std::vector<std::string>;

TEST(contamination, words_are_letters_and_digits_with_the_signs_before_them) {
  EXPECT_EQ(words_of_problem("If $x^2 = 9$, find X."), (WordList{"if", "x", "^2", "=9", "find", "x"}));
  EXPECT_EQ(words_of_problem("Compute -5 + 12.5%."), (WordList{"compute", "-5", "+12.5%"}));
  EXPECT_EQ(words_of_problem("2(x+1) < 4"), (WordList{"2", "(x", "+1)", "<4"}));
  EXPECT_EQ(words_of_problem("f(x) (the sum of 2 + 3)"), (WordList{"f", "x", "the", "sum", "of", "2", "+3"}));
  EXPECT_EQ(words_of_problem("\u6c42 12 \u89e3 \u00e9t\u00e9"),
            (std::vector<std::string>{"\u6c42", "12", "\u89e3", "\u00e9t\u00e9"}));
  EXPECT_TRUE(words_of_problem(" +-* ").empty());
}

// Two spellings of one problem are one; another sign, bracket or number is another problem.
TEST(contamination, spellings_of_an_expression_are_the_same_and_other_signs_are_not) {
  const std::pair<const char*, const char*> same[] = {{"3 \\times 4", "3*4"},
                                                      {"3 \u00d7 4", "$3 \\cdot 4$"},
                                                      {"x \u2264 4", "x <= 4"},
                                                      {"$x \\leq 4$", "x<=4"},
                                                      {"5 \u2212 2", "5-2"},
                                                      {"a ten-sided die", "a ten sided die"},
                                                      {"a 10-sided die", "a 10 sided die"},
                                                      {"one number - any number", "one number -- any number"},
                                                      {"**Find** x", "Find x"},
                                                      {"\\left(x+1\\right)^2", "(x+1)^2"},
                                                      {"\\dfrac{1}{2}", "\\frac{1}{2}"}};
  for (const auto& [a, b] : same) EXPECT_EQ(words_of_problem(a), words_of_problem(b)) << a;
  const std::pair<const char*, const char*> other[] = {{"Compute 12 + 5 - 3 * 2 / 7.", "12 * 5 + 3 - 2 - 7."},
                                                       {"12 + 5", "12 - 5"},
                                                       {"-3", "3"},
                                                       {"(1 + 2) * 3", "1 + 2 * 3"},
                                                       {"50%", "50"},
                                                       {"x^2", "x*2"},
                                                       {"x < 2", "x > 2"},
                                                       {"|x - 3|", "x - 3"},
                                                       {"1.5", "15"},
                                                       {" a3 b*2 c-3.\n", " a3 b-2 c*3.\n"},
                                                       {"3 - \\sin x", "3 + \\sin x"},
                                                       {"a-b", "a+b"}};
  for (const auto& [a, b] : other) EXPECT_NE(words_of_problem(a), words_of_problem(b)) << a;
}

TEST(contamination, problems_that_differ_by_one_sign_are_not_found) {
  EXPECT_TRUE(
      find_overlaps(problems_of({"Compute 12 + 5 - 3 * 2 / 7."}), problems_of({"Compute 12 * 5 + 3 - 2 - 7."}), 13)
          .empty());
}

TEST(contamination, finds_problems_that_are_the_same_but_for_their_punctuation) {
  const auto found = find_overlaps(problems_of({"other", "Find x, if x + 1 = 2!"}),
                                   problems_of({"find $x$ if $x+1=2$", "find y"}), 13);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].evaluated, 0u);
  EXPECT_EQ(found[0].trained, 1u);
  EXPECT_TRUE(found[0].whole);
  EXPECT_EQ(found[0].shared, 6);
  EXPECT_EQ(found[0].words, 6);
}

TEST(contamination, finds_the_longest_run_of_words_that_both_have) {
  const std::string run = "a train leaves the station at noon with three cars";
  const auto found = find_overlaps(
      problems_of({"at noon with three cars", str("once ", run, " and more"), str("b ", run, " and five")}),
      problems_of({str("one day ", run, " and five boxes"), "a train leaves the station at one"}), 5);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, run + " and five");
  EXPECT_EQ(found[0].trained, 2u);
  EXPECT_EQ(found[0].shared, 12);
  EXPECT_EQ(found[0].others, 2);
  EXPECT_FALSE(found[0].whole);
  EXPECT_EQ(found[1].text, "a train leaves the station at");
  EXPECT_EQ(find_overlaps(problems_of({run}), problems_of({"at noon with three cars, what then"}), 6).size(), 0u);
}

TEST(contamination, an_evaluated_problem_inside_a_training_problem_is_whole) {
  const auto found = find_overlaps(problems_of({"Hint: how many cars has a train of three, if one is lost? Think."}),
                                   problems_of({"How many cars has a train of three if one is lost?"}), 8);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].whole);
}

}  // namespace
}  // namespace ucas

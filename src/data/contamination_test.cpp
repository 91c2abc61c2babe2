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

TEST(contamination, words_are_letters_and_digits_without_signs) {
  EXPECT_EQ(words_of_problem("If $x^2 = 9$, find X."), (std::vector<std::string>{"if", "x", "2", "9", "find", "x"}));
  EXPECT_EQ(words_of_problem("\u6c42 12 \u89e3 \u00e9t\u00e9"),
            (std::vector<std::string>{"\u6c42", "12", "\u89e3", "\u00e9t\u00e9"}));
  EXPECT_TRUE(words_of_problem(" +-* ").empty());
}

TEST(contamination, finds_problems_that_are_the_same_but_for_their_signs) {
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

#include "data/problems.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

Problem problem_of(const std::string& text, std::vector<std::string> gold, const std::string& id = "1") {
  Problem problem;
  problem.id = id;
  problem.text = text;
  problem.gold = std::move(gold);
  return problem;
}

TEST(data_summary, kinds_of_right_answers_are_told_apart) {
  const std::pair<const char*, const char*> kinds[] = {{"7", "whole number"},
                                                       {"-1,234", "whole number"},
                                                       {"$12$", "whole number"},
                                                       {"0.5", "decimal"},
                                                       {"1e-3", "decimal"},
                                                       {"3/4", "fraction"},
                                                       {"\\frac{1}{2}", "fraction"},
                                                       {"\\dfrac12", "fraction"},
                                                       {"\\sqrt{2}", "LaTeX or formula"},
                                                       {"x^2+1", "LaTeX or formula"},
                                                       {"1, 2, 3", "several values"},
                                                       {"Paris", "words"},
                                                       {"so there are four of them in the box", "prose"},
                                                       {"", "none"}};
  for (const auto& [gold, kind] : kinds) EXPECT_EQ(gold_kind(problem_of("q", {gold})), kind) << gold;
  EXPECT_EQ(gold_kind(problem_of("q", {})), "none");
  Problem choice = problem_of("q", {"A"});
  choice.choices = {"x", "y"};
  EXPECT_EQ(gold_kind(choice), "choice");
}

TEST(data_summary, repeated_questions_are_counted_and_contradictions_among_them) {
  const ProblemsSummary summary = summarize_problems({problem_of("a", {"1"}, "1"), problem_of(" a ", {"1"}, "2"),
                                                      problem_of("a", {"2"}, "2"), problem_of("b", {"1"}, "3")});
  EXPECT_EQ(summary.problems, 4);
  EXPECT_EQ(summary.repeated_questions, 2);
  EXPECT_EQ(summary.contradictions, 1);
  EXPECT_EQ(summary.repeated_ids, 1);
  EXPECT_EQ(summary.examples.size(), 2u);
}

TEST(data_summary, a_question_after_other_turns_is_another_question) {
  Problem later = problem_of("and now?", {"1"});
  later.earlier = {{"user", "x"}, {"assistant", "y"}};
  EXPECT_EQ(summarize_problems({problem_of("and now?", {"1"}), later}).repeated_questions, 0);
}

TEST(data_summary, lengths_have_quartiles) {
  Lengths lengths;
  for (int64_t n : {5, 1, 3}) lengths.add(n);
  EXPECT_EQ(lengths.at(0), 1);
  EXPECT_EQ(lengths.at(0.5), 3);
  EXPECT_EQ(lengths.at(1), 5);
  lengths.add(9);
  EXPECT_EQ(lengths.at(1), 9);
}

}  // namespace
}  // namespace ucas

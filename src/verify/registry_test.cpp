#include "verify/registry.h"

#include <gtest/gtest.h>

#include <set>

namespace ucas {
namespace {

struct GraderCase {
  GraderKind kind;
  const char *gold, *right, *wrong, *nothing;
};
constexpr GraderCase kGraderCases[] = {
    {GraderKind::math, "\\frac12", "\\boxed{0.5}", "\\boxed{2}", "half"},
    {GraderKind::letter, "B", "\\boxed{B}", "\\boxed{C}", "\\boxed{7}"},
    {GraderKind::choice, "B", "B", "C", ""},
    {GraderKind::numeric, "0.125", "\\boxed{12.5\\%}", "\\boxed{0.126}", "\\boxed{x}"},
    {GraderKind::countdown, "24: 3 5 7 9", "\\boxed{9+5+7+3}", "\\boxed{9+5+7-3}", "\\boxed{n}"},
};

TEST(grader_registry, every_grader_scores_1_for_what_is_right_and_0_for_anything_else) {
  for (const GraderCase& c : kGraderCases) {
    std::vector<std::string> gold = {c.gold};
    std::vector<Answer> answers = {{c.right, &gold}, {c.wrong, &gold}, {c.nothing, &gold}};
    std::vector<Verdict> verdicts = make_grader(c.kind)->grade(answers);
    ASSERT_EQ(verdicts.size(), 3u) << word_of(c.kind);
    const VerdictKind kinds[] = {VerdictKind::equal, VerdictKind::unequal, VerdictKind::unparseable};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(verdicts[i].kind, kinds[i]) << word_of(c.kind) << " on " << answers[i].response;
      EXPECT_EQ(verdicts[i].score, i == 0 ? 1.0f : 0.0f) << word_of(c.kind) << " on " << answers[i].response;
      EXPECT_FALSE(verdicts[i].reason.empty()) << word_of(c.kind) << " on " << answers[i].response;
    }
  }
}

TEST(grader_registry, every_grader_has_a_name_of_its_own) {
  std::set<std::string> names;
  for (const GraderCase& c : kGraderCases) names.insert(word_of(c.kind));
  EXPECT_EQ(names, (std::set<std::string>{"math", "letter", "choice", "numeric", "countdown"}));
}

TEST(grader_registry, every_grader_puts_equal_answers_of_a_group_into_one_class) {
  for (const GraderCase& c : kGraderCases) {
    std::vector<std::string> gold = {c.gold};
    std::vector<Answer> answers = {{c.wrong, &gold}, {c.right, &gold}, {c.nothing, &gold}, {c.wrong, &gold}};
    std::unique_ptr<Grader> grader = make_grader(c.kind);
    std::vector<Verdict> group = grader->grade(answers);
    grader->classify(group);
    EXPECT_EQ(group[0].answer_class, 0) << word_of(c.kind);
    EXPECT_EQ(group[1].answer_class, 1) << word_of(c.kind);
    EXPECT_EQ(group[2].answer_class, -1) << word_of(c.kind);
    EXPECT_EQ(group[3].answer_class, 0) << word_of(c.kind);
  }
}

}  // namespace
}  // namespace ucas

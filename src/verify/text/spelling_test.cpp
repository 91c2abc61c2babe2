#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "verify/registry.h"

namespace ucas {
namespace {

Verdict spelt(const std::string& gold, const std::string& response, Extract extract = Extract::lenient) {
  const std::vector<std::string> golds = {gold};
  const Answer answer{response, &golds, extract};
  return make_grader(GraderKind::spelling)->grade({&answer, 1}).front();
}

struct SpellingCase {
  const char* response;
  VerdictKind kind;
};
constexpr SpellingCase kSpellingCases[] = {
    {"elppa", VerdictKind::equal},
    {"Elppa.", VerdictKind::equal},
    {"e-l-p-p-a", VerdictKind::equal},
    {"e l p p a", VerdictKind::equal},
    {"The word \"apple\" spelled backward is \"elppa\".", VerdictKind::equal},
    {"The word \u201capple\u201d backwards is \u201celppa\u201d", VerdictKind::equal},
    {"Apple backward: elppa", VerdictKind::equal},
    {"**elppa**", VerdictKind::equal},
    {"The answer is E, L, P, P, A.", VerdictKind::equal},
    {"\\boxed{elppa}", VerdictKind::equal},
    {"<answer>elppa</answer>", VerdictKind::equal},
    {"The word \"elppa\" spelled backward is \"apple\".", VerdictKind::unequal},
    {"elpa", VerdictKind::unequal},
    {"apple", VerdictKind::unequal},
    {"elppa elppa", VerdictKind::unparseable},  // words of a sentence, not letters
    {"The word is elppa or apple", VerdictKind::unequal},
    {"I would turn the word around", VerdictKind::unparseable},
    {"?", VerdictKind::unparseable},
    {"", VerdictKind::unparseable},
};

TEST(spelling_grader, pays_for_the_same_letters_in_the_same_order) {
  for (const SpellingCase& c : kSpellingCases) {
    const Verdict verdict = spelt("elppa", c.response);
    EXPECT_EQ(verdict.kind, c.kind) << c.response << ": \"" << verdict.answer << "\", " << verdict.reason;
  }
}

// The grader of mathematics takes both for the product a e l p p.
TEST(spelling_grader, does_not_take_a_word_for_a_product) {
  EXPECT_EQ(spelt("elppa", "apple", Extract::bare).kind, VerdictKind::unequal);
}

TEST(spelling_grader, looks_where_it_is_told) {
  EXPECT_EQ(spelt("elppa", "elppa", Extract::strict).kind, VerdictKind::unparseable);
  EXPECT_EQ(spelt("elppa", "x \\boxed{elppa}", Extract::strict).kind, VerdictKind::equal);
  EXPECT_EQ(spelt("elppa", "elppa", Extract::answer_tag).kind, VerdictKind::unparseable);
  EXPECT_EQ(spelt("elppa", "a <answer>elppa</answer>", Extract::answer_tag).kind, VerdictKind::equal);
}

TEST(spelling_grader, refuses_a_gold_without_letters) {
  const auto grader = make_grader(GraderKind::spelling);
  EXPECT_NO_THROW(grader->check_gold({"elppa"}, "f:1"));
  EXPECT_THROW(grader->check_gold({"\\frac12"}, "f:1"), Error);
  EXPECT_THROW(grader->check_gold({"--"}, "f:1"), Error);
}

}  // namespace
}  // namespace ucas

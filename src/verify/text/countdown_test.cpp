#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "verify/registry.h"

namespace ucas {
namespace {

Verdict judged(const std::string& gold, const std::string& response, Extract extract = Extract::lenient) {
  const std::vector<std::string> golds = {gold};
  const Answer answer{response, &golds, extract};
  return make_grader(GraderKind::countdown)->grade({&answer, 1}).front();
}

struct CountdownCase {
  const char *gold, *response;
  VerdictKind kind;
};
constexpr VerdictKind kRight = VerdictKind::equal, kWrong = VerdictKind::unequal, kUnread = VerdictKind::unparseable;

constexpr CountdownCase kCountdownCases[] = {
    // Right, in the ways that models write.
    {"24: 3 8", "3 * 8", kRight},
    {"24: 3 8", "The answer is 8 \u00d7 3.", kRight},
    {"24: 3 8", "24 = 3*8", kRight},
    {"24: 3 8", "We can use 3 and 8: (3 x 8) = 24", kRight},
    {"24: 3 8", "<answer>(8) * (3)</answer> as asked", kRight},
    {"24: 3 8", "So $3 \\times 8 = 24$.", kRight},
    {"24: 3 8", "\\boxed{3 \\cdot 8}", kRight},
    {"5: 10 2", "1. First:\n- 10 / 2 = 5", kRight},
    {"7: 2 5", "(it is 2 + 5)", kRight},
    {"21: 1 2 3 4", "(1 + 2) * (3 + 4) = 3 * 7 = 21", kRight},
    {"24: 3 3 8 8", "8 / (3 - 8 / 3)", kRight},  // 8 divided by a third, exactly
    {"-4: 3 7", "3 - 7", kRight},
    // Wrong, and why it is not rewarded.
    {"24: 3 8", "3 + 8", kWrong},
    {"24: 3 8", "3 * 8 = 25", kWrong},     // a false equation
    {"24: 3 8", "24", kUnread},            // no expression of the numbers
    {"24: 3 8 1", "3 * 8", kWrong},        // one number left out
    {"24: 3 8", "3 * 8 * 1", kWrong},      // one too many
    {"24: 3 8", "3 * 8 + 3 - 3", kWrong},  // one used three times
    {"38: 3 8", "38 + 0", kWrong},         // digits joined
    {"1: 3 3", "3 / (3 - 3)", kWrong},     // by zero
    {"8: 24 3", "3 * 24 / 9", kWrong},
    {"3: 7 2", "7 / 2", kWrong},                                     // 7/2, not rounded
    {"8: 2 3", "<answer>3 * 2</answer> but 2 + 3 + 3 = 8", kWrong},  // what the tag says counts
    // Not an expression of the four operations.
    {"8: 2 3", "2 ** 3", kUnread},
    {"3: 7 2", "7 // 2", kUnread},
    {"8: 2 3", "2^3", kUnread},
    {"7: 5 2", "3.5 + 2", kUnread},
    {"7: 5 2", "10^2 + 5", kUnread},
    {"7: 3 4", "3 + 4!", kUnread},
    {"7: 3 4", "-(3 + 4)", kUnread},
    {"5: 3 8", "-3 + 8", kUnread},
    {"7: 3 4", "3 + 4x", kUnread},
    {"7: 3 4", "y3 + 4", kUnread},
    {"7: 3 4", "(3 + 4", kRight},  // a parenthesis of the sentence
    {"7: 3 4", "((3 + 4", kUnread},
    {"11: 3 4", "03 + 8", kUnread},
    {"7: 3 4", "three and four", kUnread},
    {"7: 3 4", "", kUnread},
    {"7: 3 4", "<answer>sum of 3 and 4</answer>", kUnread},
};

TEST(countdown_grader, pays_for_an_expression_that_reaches_the_target_with_each_number_once) {
  for (const CountdownCase& c : kCountdownCases) {
    const Verdict verdict = judged(c.gold, c.response);
    EXPECT_EQ(verdict.kind, c.kind) << c.gold << " <- " << c.response << ": \"" << verdict.answer << "\", "
                                    << verdict.reason;
  }
}

TEST(countdown_grader, looks_where_it_is_told) {
  const std::string boxed = "3 + 8, no: \\boxed{3 * 8}", tagged = "<answer>3 * 8</answer>", bare = "3 * 8";
  EXPECT_EQ(judged("24: 3 8", boxed, Extract::strict).kind, kRight);
  EXPECT_EQ(judged("24: 3 8", bare, Extract::strict).kind, kUnread);
  EXPECT_EQ(judged("24: 3 8", tagged, Extract::answer_tag).kind, kRight);
  EXPECT_EQ(judged("24: 3 8", bare, Extract::answer_tag).kind, kUnread);
  EXPECT_EQ(judged("24: 3 8", bare, Extract::bare).kind, kRight);
  EXPECT_EQ(judged("24: 3 8", "it is 3 * 8", Extract::bare).kind, kUnread);
}

TEST(countdown_grader, works_on_anything_within_bounds) {
  EXPECT_EQ(judged("1: 1", std::string(100000, '(') + "1+1").kind, VerdictKind::over_budget);
  EXPECT_EQ(judged("1: 1", std::string(100, '(') + "1" + std::string(100, ')') + "+1").kind, kUnread);
  std::string powers = "999999999";
  for (int i = 0; i < 20; ++i) powers += "*999999999";
  EXPECT_EQ(judged("1: 1", powers).kind, kWrong);
  EXPECT_EQ(judged("1: 1", "99999999999999999999 + 1").kind, kWrong);
}

TEST(countdown_grader, refuses_a_gold_that_is_no_puzzle) {
  const auto grader = make_grader(GraderKind::countdown);
  EXPECT_NO_THROW(grader->check_gold({"24: 3 8"}, "f:1"));
  for (const char* gold : {"24", "24: ", "x: 3", "24: 3 -8", "24: 3 b", "2.5: 5 2", "99999999999999999999: 1"}) {
    EXPECT_THROW(grader->check_gold({gold}, "f:1"), Error) << gold;
  }
}

TEST(countdown_grader, puts_the_same_expression_into_one_class) {
  const std::vector<std::string> gold = {"24: 3 8"};
  const std::vector<Answer> answers = {
      {"3 + 8", &gold}, {"3*8", &gold}, {"3+8 = 24", &gold}, {"8 \u00d7 3", &gold}, {"?", &gold}};
  const auto grader = make_grader(GraderKind::countdown, {Extract::lenient});
  std::vector<Verdict> group = grader->grade(answers);
  grader->classify(group);
  EXPECT_EQ(group[0].answer_class, group[2].answer_class);
  EXPECT_EQ(group[1].answer_class, group[3].answer_class);
  EXPECT_NE(group[0].answer_class, group[1].answer_class);
  EXPECT_EQ(group[4].answer_class, -1);
}

// Expressions are made together with their value, in long double where that is exact; another target is never rewarded.
TEST(countdown_grader, agrees_with_the_value_that_an_expression_was_made_with) {
  struct Made {
    std::string text;
    int64_t value;
    bool atom;
  };
  Rng rng(7, 1);
  int rewarded = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<Made> parts;
    std::vector<std::string> numbers;
    const int64_t count = 2 + rng.below(4);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t number = 1 + rng.below(30);
      numbers.push_back(str(number));
      parts.push_back({str(number), number, true});
    }
    while (parts.size() > 1) {
      const auto take = [&] {
        const auto at = parts.begin() + rng.below(static_cast<int64_t>(parts.size()));
        Made made = *at;
        parts.erase(at);
        return made;
      };
      const Made a = take(), b = take();
      int64_t kind = rng.below(4);
      if (kind == 3 && (b.value == 0 || a.value % b.value != 0)) kind = 0;
      const char symbol = "+-*/"[kind];
      const int64_t value = kind == 0   ? a.value + b.value
                            : kind == 1 ? a.value - b.value
                            : kind == 2 ? a.value * b.value
                                        : a.value / b.value;
      const auto side = [](const Made& m) { return m.atom ? m.text : str("(", m.text, ")"); };
      parts.push_back({str(side(a), " ", symbol, " ", side(b)), value, false});
    }
    const std::string given = join(numbers, " ");
    EXPECT_EQ(judged(str(parts[0].value, ": ", given), parts[0].text).kind, kRight) << parts[0].text;
    EXPECT_EQ(judged(str(parts[0].value + 1, ": ", given), parts[0].text).kind, kWrong) << parts[0].text;
    EXPECT_EQ(judged(str(parts[0].value, ": ", given, " 1"), parts[0].text).kind, kWrong) << parts[0].text;
    ++rewarded;
  }
  EXPECT_EQ(rewarded, 3000);
}

}  // namespace
}  // namespace ucas

#include "results/compare/diagnosis.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

double value_of(const SignalledResponse& o, Signal signal) { return o.signal[static_cast<size_t>(signal)]; }

SampledResponse stored_sample(const char* text, const char* answer, VerdictKind verdict, int64_t tokens) {
  SampledResponse o;
  o.response = text;
  o.answer = answer;
  o.verdict = verdict;
  o.tokens = tokens;
  o.logprob = -3;
  o.entropy = 0.5;
  o.confidence = 20;
  return o;
}

TEST(signalled_groups, an_opening_is_the_first_words_whatever_stands_between_them) {
  EXPECT_EQ(opening_of(" r2 b12\n\\boxed{12}", 1), "r2");
  EXPECT_EQ(opening_of(" r2\n\t b12  c3", 2), "r2 b12");
  EXPECT_EQ(opening_of("r2", 5), "r2");
  EXPECT_EQ(opening_of(" \n", 1), "");
}

TEST(signalled_groups, a_problem_of_an_evaluation_has_means_over_tokens_and_shares_of_equal_answers) {
  ProblemRow row;
  row.id = "p";
  row.responses = {
      stored_sample("r0 x", "1/2", VerdictKind::unequal, 6), stored_sample("r1", "0.5", VerdictKind::unequal, 4),
      stored_sample("r0", "3", VerdictKind::equal, 3),       stored_sample("", "", VerdictKind::unparseable, 2),
      stored_sample("7", "", VerdictKind::unparseable, 5),   stored_sample("", "", VerdictKind::unparseable, 0)};
  ProblemRow alone;
  alone.id = "q";
  alone.responses = {stored_sample("r0", "3", VerdictKind::equal, 3)};
  const std::vector<SignalledGroup> groups = signalled_groups(std::vector{row, alone}, 1);
  ASSERT_EQ(groups.size(), 1u);               // one response has nothing to be compared with
  ASSERT_EQ(groups[0].responses.size(), 5u);  // no token, no mean
  const SignalledResponse& first = groups[0].responses[0];
  EXPECT_EQ(first.opening, "r0");
  EXPECT_FALSE(first.right);
  EXPECT_DOUBLE_EQ(value_of(first, Signal::kl_uniform), 20);
  EXPECT_DOUBLE_EQ(value_of(first, Signal::logprob), -0.5);
  EXPECT_DOUBLE_EQ(value_of(first, Signal::neg_entropy), -0.5);
  EXPECT_DOUBLE_EQ(value_of(first, Signal::length), 6);
  EXPECT_DOUBLE_EQ(value_of(first, Signal::self_consistency), 0.4);  // 1/2 is 0.5
  EXPECT_DOUBLE_EQ(value_of(groups[0].responses[1], Signal::logprob), -0.75);
  EXPECT_TRUE(groups[0].responses[2].right);
  EXPECT_DOUBLE_EQ(value_of(groups[0].responses[2], Signal::self_consistency), 0.2);
  // Unreadable: agrees with itself alone, not with the other one.
  EXPECT_DOUBLE_EQ(value_of(groups[0].responses[3], Signal::self_consistency), 0.2);
  EXPECT_DOUBLE_EQ(value_of(groups[0].responses[4], Signal::self_consistency), 0.2);
}

}  // namespace
}  // namespace ucas

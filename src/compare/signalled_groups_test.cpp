#include "compare/diagnosis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/batches.h"

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

// Rewards 1 and 0 of two responses: Eq. 3 gives +-0.5 / (sqrt(1/2) + 1e-6).
StepData two_responses() {
  StepData data;
  data.step = 20;
  data.batch = testing::make_batch({{0, 1, {20, 22}, {1, 2}}, {0, 0, {30, 10}, {-1, 4}}});
  data.batch.stop_ids = {9};
  data.batch.token = {5, 9, 6, 9};
  data.batch.old_logprob = {-1, -0.5f, -3, -1};
  data.batch.entropy = {};
  data.batch.responses[0].verdict.kind = VerdictKind::equal;
  data.batch.responses[0].verdict.answer = "4";
  data.problem = {"p"};
  data.piece = {" r1", "</s>", " r0", "</s>"};
  data.groups_of_step = 1;
  data.advantage = {0.5f, 0.25f, -1, -1};
  return data;
}

TEST(signalled_groups, a_saved_step_gives_what_the_method_read_and_made) {
  const std::vector<SignalledGroup> groups = signalled_groups(two_responses(), 1);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].step, 20);
  const SignalledResponse& o = groups[0].responses[0];
  EXPECT_EQ(o.opening, "r1");  // and no end token behind it
  EXPECT_TRUE(o.right);
  EXPECT_DOUBLE_EQ(value_of(o, Signal::kl_uniform), 21);
  EXPECT_DOUBLE_EQ(value_of(o, Signal::logprob), -0.75);
  EXPECT_TRUE(std::isnan(value_of(o, Signal::neg_entropy)));  // not recorded
  EXPECT_NEAR(o.A, 0.7071058, 1e-7);
  EXPECT_DOUBLE_EQ(o.A_final, 0.375);
}

TEST(signalled_groups, where_ucas_recorded_its_own_advantages_these_count) {
  StepData data = two_responses();
  data.trace = {{"A", false, {0.5f, -0.5f}}};
  const SignalledResponse o = signalled_groups(data, 1)[0].responses[0];
  EXPECT_DOUBLE_EQ(o.A, 0.5);
}

}  // namespace
}  // namespace ucas

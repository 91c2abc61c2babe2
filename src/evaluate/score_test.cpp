#include "evaluate/score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/str.h"
#include "evaluate/benchmark.h"
#include "results/stats/intervals.h"

namespace ucas {

namespace {

struct Case {
  std::vector<Problem> problems;
  std::vector<Responses> responses;
  Graders graders;
  EvalConfig config;

  Case() { graders.standard = make_grader(GraderKind::math); }
  // A problem whose answer is 1, with these answers; the first is the greedy one.
  void add(const std::string& source, const std::vector<int>& answers, double logprob = -0.5) {
    Problem& p = problems.emplace_back();
    p.source = source;
    p.id = str(problems.size());
    p.gold = {"1"};
    Responses& r = responses.emplace_back();
    for (size_t i = 0; i < answers.size(); ++i) {
      const Output o{.source = source,
                     .id = p.id,
                     .sample = static_cast<int64_t>(i) - 1,
                     .text = str("\\boxed{", answers[i], "}"),
                     .ids = {4, 5},
                     .finished = true,
                     .logprob = answers[i] == 1 ? 2 * logprob : 4 * logprob,
                     .entropy = 0.5,
                     .confidence = answers[i] == 1 ? 3.0 : 2.0};
      (i == 0 ? r.greedy : r.samples).push_back(o);
    }
  }
  EvalRecord run() const { return score(problems, responses, graders, config); }
};

}  // namespace

TEST(evaluate_score, macro_averages_count_each_benchmark_the_same) {
  Case c;
  c.config.samples = 2;
  c.config.ks = {1, 2};
  c.add("small", {1, 1, 0});
  for (int i = 0; i < 4; ++i) c.add("large", {i == 0, 0, i == 1});
  const EvalRecord r = c.run();
  ASSERT_EQ(r.by_source.size(), 2u);
  EXPECT_EQ(r.by_source[0].first, "small") << "order of the problems, not of the alphabet";
  EXPECT_DOUBLE_EQ(r.greedy.value, 2.0 / 5);
  ASSERT_TRUE(r.macro.has_value());
  EXPECT_DOUBLE_EQ(r.macro->greedy.value, (1 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(r.macro->mean_at[0].share.value, (0.5 + 1.0 / 8) / 2);
  EXPECT_DOUBLE_EQ(r.macro->pass_at[1].share.value, (1 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(r.macro->majority_at[0].share.value, (1 + 0.0) / 2) << "ties go to the first answer seen";
  EXPECT_DOUBLE_EQ(r.by_source[1].second.cover.value, 1.0 / 4) << "one of four has half of its samples right";
  EXPECT_DOUBLE_EQ(r.macro->cover.value, (1 + 0.25) / 2);
  EXPECT_LT(r.macro->greedy.low, r.macro->greedy.value);
  EXPECT_GT(r.macro->greedy.high, r.macro->greedy.value);
}

TEST(evaluate_score, one_benchmark_has_no_macro_average) {
  Case c;
  c.config.samples = 1;
  c.add("a", {1, 0});
  EXPECT_FALSE(c.run().macro.has_value());
  EXPECT_FALSE(c.run().cover.known()) << "of one sample it would be mean@1 again";
}

TEST(evaluate_score, each_benchmark_has_its_own_grader) {
  Case c;
  c.config.samples = 0;
  c.add("math", {1});
  c.add("letters", {1});
  c.problems[1].gold = {"B"};
  c.responses[1].greedy[0].text = "So the answer is B.";
  EXPECT_EQ(c.run().of("letters")->greedy.value, 0) << "there is no box";
  c.graders.of["letters"] = make_grader(GraderKind::letter, Extract::strict);
  const EvalRecord r = c.run();
  EXPECT_EQ(r.of("letters")->greedy.value, 1);
  EXPECT_EQ(r.of("math")->greedy.value, 1);
}

TEST(evaluate_score, compared_choices_beside_generated_sets_have_no_samples_and_no_macro_mean) {
  Case c;
  c.config.samples = 2;
  c.add("math", {1, 1, 0});
  c.add("choices", {1});
  const EvalRecord r = c.run();
  EXPECT_DOUBLE_EQ(r.mean_at[0].share.value, 0.5) << "over the problems that have samples";
  EXPECT_TRUE(r.of("choices")->mean_at.empty());
  EXPECT_DOUBLE_EQ(r.macro->greedy.value, 1);
  EXPECT_TRUE(r.macro->mean_at.empty()) << "a mean of one of two sets would pass for that of both";
  EXPECT_EQ(r.rows[1].samples, 0);
}

TEST(evaluate_score, pass_at_k_does_not_move_when_samples_double) {
  // Chance 0.3 per sample of each problem, sampled from a fixed pattern: the first half of 128 samples is those of 64.
  Case c;
  for (int p = 0; p < 60; ++p) {
    std::vector<int> answers = {0};
    for (int i = 0; i < 128; ++i) answers.push_back((p * 7919 + i * 104729 + p * i * 31) % 1009 < 303);
    c.add("a", answers);
  }
  c.config.ks = {1, 2, 4, 8, 16};
  c.config.samples = 128;
  const EvalRecord all = c.run();
  for (Responses& r : c.responses) r.samples.resize(64);
  c.config.samples = 64;
  const EvalRecord half = c.run();
  for (size_t i = 0; i < 5; ++i) {
    const Figure &a = half.pass_at[i].share, &b = all.pass_at[i].share;
    EXPECT_NEAR(a.value, 1 - std::pow(0.7, c.config.ks[i]), 0.03);
    EXPECT_NEAR(a.value, b.value, 0.03) << "pass@" << c.config.ks[i];
  }
}

}  // namespace ucas

#include "results/compare/contrast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "results/compare/answers.h"
#include "results/stats/paired.h"

namespace ucas {
namespace {

// Greedy answers to problems "0", "1" ... of sources by turns; `correct` of four samples right everywhere.
RunAnswers run_of(const std::vector<int>& right, RunLabel label = {}, const std::vector<std::string>& sources = {"a"},
                  int64_t correct = 2) {
  RunAnswers run;
  run.label = label;
  for (size_t i = 0; i < right.size(); ++i) {
    ProblemAnswers& p = run.problems.emplace_back();
    p.id = str(i);
    p.source = sources[i % sources.size()];
    p.greedy = right[i];
    p.samples = 4;
    p.correct = correct;
  }
  return run;
}

// `n` problems of which the first `right` are answered.
std::vector<int> first_of(int64_t n, int64_t right) {
  std::vector<int> out(static_cast<size_t>(n), 0);
  for (int64_t i = 0; i < right; ++i) out[static_cast<size_t>(i)] = 1;
  return out;
}

Quantity over(const std::string& metric, const std::string& scope) {
  Quantity quantity = parse_quantity(metric);
  quantity.scope = scope;
  return quantity;
}

AnswerGroup group_of(std::vector<RunAnswers> runs, bool trained = true) { return {"g", trained, std::move(runs)}; }

Contrast greedy(const AnswerGroup& a, const AnswerGroup& b) { return contrast(a, b, parse_quantity("greedy"), {}); }

TEST(quantity, values_of_a_source_and_of_the_mean_of_sources_come_from_the_problems) {
  RunAnswers run = run_of({1, 0, 1, 0, 1}, {}, {"a", "b"});  // a: 0, 2, 4; b: 1, 3
  for (size_t i : {1, 3}) run.problems[i].correct = 0;
  run.figures["entropy"] = 0.5;
  EXPECT_DOUBLE_EQ(value_of(run, parse_quantity("greedy")), 0.6);
  EXPECT_DOUBLE_EQ(value_of(run, over("greedy", "a")), 1.0);
  EXPECT_DOUBLE_EQ(value_of(run, over("greedy", "b")), 0.0);
  EXPECT_DOUBLE_EQ(value_of(run, over("greedy", "macro")), 0.5);
  EXPECT_DOUBLE_EQ(value_of(run, over("mean@4", "a")), 0.5);
  EXPECT_DOUBLE_EQ(value_of(run, over("mean@2", "a")), 0.5);  // of all samples, as pass@k is
  EXPECT_DOUBLE_EQ(value_of(run, over("pass@4", "b")), 0.0);
  EXPECT_TRUE(std::isnan(value_of(run, parse_quantity("mean@8"))));
  EXPECT_DOUBLE_EQ(value_of(run, parse_quantity("entropy")), 0.5);
  for (const char* wrong : {"graedy", "pass@0", "mean", "mean@x", "greedy:a", "steps_to@0.5", "mixed"}) {
    EXPECT_THROW(parse_quantity(wrong), Error) << wrong;
  }
}

TEST(pairing, problems_are_paired_by_source_and_id) {
  // Both sources have ids 0 ... 4; source a is right before, b after.
  RunAnswers before, after;
  for (const std::string source : {"a", "b"}) {
    for (int i = 0; i < 5; ++i) {
      before.problems.push_back({source, str(i), "", source == "a", 0, 0, 0, 0});
      after.problems.push_back({source, str(i), "", source == "b", 0, 0, 0, 0});
    }
  }
  const Contrast d = greedy(group_of({before}), group_of({after}));
  EXPECT_EQ(d.problems, 10);
  EXPECT_EQ(d.gained, 5);
  EXPECT_EQ(d.lost, 5);
}

TEST(pairing, runs_are_paired_by_base_and_seed_and_an_unknown_base_is_no_obstacle) {
  const auto pairs = [](std::vector<RunLabel> a, std::vector<RunLabel> b) {
    std::vector<RunAnswers> from, to;
    for (const RunLabel& label : a) from.push_back(run_of({1, 0}, label));
    for (const RunLabel& label : b) to.push_back(run_of({1, 0}, label));
    return pair_runs(group_of(from), group_of(to));
  };
  EXPECT_EQ(pairs({{"x", 0}, {"y", 1}}, {{"y", 1}, {"x", 0}}).pairs.size(), 2u);
  EXPECT_EQ(pairs({{"x", 0}, {"x", 1}}, {{"y", 0}, {"x", 1}}).pairs.size(), 1u);  // seed 0 of another base
  EXPECT_EQ(pairs({{"", 0}, {"", 1}}, {{"y", 0}, {"y", 1}}).pairs.size(), 2u);
  EXPECT_EQ(pairs({{"", 0}, {"", 1}}, {{"", 2}, {"", 3}}).kind, Pairs::unpaired);
  EXPECT_EQ(pairs({{"", 0}, {"", 1}}, {{"", 0}}).left_out, 1u);
}

TEST(pairing, an_untrained_base_stands_beside_every_run_that_began_with_it) {
  std::vector<RunAnswers> trained;
  for (const char* base : {"x", "y"}) {
    for (int64_t seed : {0, 1}) trained.push_back(run_of({1, 1}, {base, seed}));
  }
  const AnswerGroup untrained = group_of({run_of({0, 0}, {"y", -1}), run_of({0, 1}, {"x", -1})}, false);
  const AnswerGroup runs = group_of(trained),
                    fresh = group_of({run_of({0, 0}, {"", 0})}, false);  // pairs point at them
  const RunPairs bases = pair_runs(untrained, runs);
  ASSERT_EQ(bases.pairs.size(), 4u);
  for (const auto& [base, run] : bases.pairs) EXPECT_EQ(base->label.base, run->label.base);
  const RunPairs one = pair_runs(runs, fresh);
  EXPECT_EQ(one.kind, Pairs::fixed);
  ASSERT_EQ(one.pairs.size(), 4u);
  EXPECT_EQ(one.pairs[0].first->label.base, "x");  // the order of the groups is kept
}

TEST(contrast, whichever_group_is_untrained_the_seeds_are_those_of_the_other) {
  const AnswerGroup base = group_of({run_of(first_of(40, 5), {"", 0})}, false);
  const AnswerGroup trained = group_of({run_of(first_of(40, 30), {"w", 0}), run_of(first_of(40, 32), {"w", 1})});
  for (const Contrast& d : {greedy(base, trained), greedy(trained, base)}) {
    EXPECT_NE(d.basis.find("t over 2 seeds against the untrained model"), std::string::npos) << d.basis;
  }
}

TEST(contrast, the_paired_t_test_over_seeds_is_that_of_the_textbook) {
  // Differences 0.1 ... 0.4 of 1,000 problems: t = 0.25 / (0.1290994 / 2) = 3.872983, p = 0.0304662 (scipy ttest_rel),
  // 95 % interval 0.25 -+ 3.182446 * 0.0645497. Each problem is gained by one of the four runs, so that problems differ
  // by single answers alone and the runs decide.
  std::vector<RunAnswers> a, b;
  int64_t next = 0;
  for (int64_t s = 1; s <= 4; ++s) {
    std::vector<int> gained(1000, 0);
    for (int64_t i = 0; i < 100 * s; ++i) gained[static_cast<size_t>(next++)] = 1;
    a.push_back(run_of(first_of(1000, 0), {"", s}));
    b.push_back(run_of(gained, {"", s}));
  }
  const Contrast d = greedy(group_of(a), group_of(b));
  EXPECT_EQ(d.runs, 4);
  EXPECT_EQ(d.problems, 1000);
  EXPECT_NEAR(d.change.value, 0.25, 1e-12);
  EXPECT_NEAR(d.p, 0.0304662, 1e-6);
  EXPECT_NEAR(d.change.low, 0.25 - 3.182446 * 0.0645497, 1e-5);
}

TEST(contrast, the_same_runs_given_twice_are_no_evidence) {
  // One run each: 2 gained, 8 lost of 512, p = 0.109. The same evaluations as seeds 0 and 1 must not become p < 0.001.
  std::vector<int> x = first_of(512, 300), y = x;
  for (size_t i = 0; i < 8; ++i) y[i] = 0;
  for (size_t i = 400; i < 402; ++i) y[i] = 1;
  Contrast one = greedy(group_of({run_of(x)}), group_of({run_of(y)}));
  EXPECT_EQ(one.p, mcnemar(2, 8));
  Contrast twice =
      greedy(group_of({run_of(x, {"", 0}), run_of(x, {"", 1})}), group_of({run_of(y, {"", 0}), run_of(y, {"", 1})}));
  Contrast* const family[] = {&twice};
  EXPECT_EQ(correct(family, 0.95), 0);
  EXPECT_TRUE(std::isnan(twice.p));
  EXPECT_FALSE(twice.change.bounded());
  EXPECT_FALSE(twice.significant);
  EXPECT_EQ(words_of(twice, 0.95), "not estimable");
  EXPECT_EQ(twice.basis, "t over 2 seeds, which all differ by the same");
}

TEST(contrast, nearly_the_same_runs_are_held_back_by_their_problems) {
  // Over runs the two differences of 6 and 7 of 512 are certain, over problems they are not.
  std::vector<int> x = first_of(512, 300), y = x;
  for (size_t i = 0; i < 8; ++i) y[i] = 0;
  for (size_t i = 400; i < 402; ++i) y[i] = 1;
  std::vector<int> z = y;
  z[8] = 0;
  const Contrast d =
      greedy(group_of({run_of(x, {"", 0}), run_of(x, {"", 1})}), group_of({run_of(y, {"", 0}), run_of(z, {"", 1})}));
  EXPECT_GT(d.p, 0.03);
  EXPECT_GT(d.change.high, -0.001);
}

TEST(contrast, problems_alone_do_not_claim_what_scatters_over_seeds) {
  // Seed 0 gains on all 40 problems, seed 1 on none: over problems certain, over seeds nothing.
  Contrast d = greedy(group_of({run_of(first_of(40, 0), {"", 0}), run_of(first_of(40, 0), {"", 1})}),
                      group_of({run_of(first_of(40, 40), {"", 0}), run_of(first_of(40, 0), {"", 1})}));
  EXPECT_NEAR(d.change.value, 0.5, 1e-12);
  Contrast* const family[] = {&d};
  correct(family, 0.95);
  EXPECT_FALSE(d.significant);
}

TEST(contrast, seeds_of_one_base_are_no_further_bases) {
  // Two bases, three seeds each; the seeds of a base agree, the bases do not: two values, not six.
  std::vector<RunAnswers> a, b;
  for (int64_t base : {0, 1}) {
    for (int64_t seed : {0, 1, 2}) {
      a.push_back(run_of(first_of(100, 20), {str("b", base), seed}));
      b.push_back(run_of(first_of(100, 30 + 10 * base + seed), {str("b", base), seed}));
    }
  }
  const Contrast d = greedy(group_of(a), group_of(b));
  EXPECT_EQ(d.runs, 6);
  EXPECT_NEAR(d.change.value, 0.16, 1e-12);
  EXPECT_LT(d.change.low, 0.16 - 12.7 * 0.05 + 0.01);  // t with one degree of freedom over 0.11 and 0.21
  EXPECT_NE(d.basis.find("t over 2 bases (6 runs)"), std::string::npos) << d.basis;
}

TEST(contrast, sources_weigh_the_same_in_the_mean_of_sources) {
  // a: 30 problems, no change; b: 10 problems, all gained. Mean over sources 0.5. Within a source nothing scatters, but
  // both are few: half a problem of each that was not seen is in every resample.
  const std::vector<std::string> turns = {"a", "a", "a", "b"};
  std::vector<int> before(40, 0), after(40, 0);
  for (size_t i = 3; i < 40; i += 4) after[i] = 1;
  const Contrast d = contrast(group_of({run_of(before, {}, turns)}), group_of({run_of(after, {}, turns)}),
                              over("greedy", "macro"), {});
  EXPECT_NEAR(d.change.value, 0.5, 1e-12);
  EXPECT_GT(d.change.low, 0.2);
  EXPECT_LT(d.change.low, 0.4);
  EXPECT_GE(d.change.high, 0.5);
  EXPECT_LT(d.change.high, 0.56);
}

TEST(contrast, one_run_each_without_problems_gives_a_difference_and_no_test) {
  RunAnswers a, b;
  a.figures["entropy"] = 0.5;
  b.figures["entropy"] = 0.7;
  const Contrast d = contrast(group_of({a}), group_of({b}), parse_quantity("entropy"), {});
  EXPECT_NEAR(d.change.value, 0.2, 1e-12);
  EXPECT_FALSE(d.change.bounded());
  EXPECT_TRUE(std::isnan(d.p));
}

TEST(contrast, runs_without_a_common_seed_are_two_independent_samples) {
  std::vector<RunAnswers> a, b;
  for (int64_t s = 0; s < 3; ++s) {
    a.push_back(run_of(first_of(200, 100 + 2 * s), {"", s}));
    b.push_back(run_of(first_of(200, 140 + 3 * s), {"", 10 + s}));
  }
  const Contrast d = greedy(group_of(a), group_of(b));
  EXPECT_NEAR(d.change.value, 41 / 200.0, 1e-12);
  EXPECT_LT(d.p, 0.01);
  EXPECT_GT(d.change.low, 0.1);
  EXPECT_NE(d.basis.find("Welch's t over 3 and 3 runs"), std::string::npos) << d.basis;
}

}  // namespace
}  // namespace ucas

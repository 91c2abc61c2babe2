#include "results/compare/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "evaluate/results/table.h"
#include "results/stats/paired.h"

namespace ucas {
namespace {

// `right` of `problems` greedy answers, from the front; as many of 8 samples right everywhere.
RunAnswers run_of(const std::string& source, int64_t problems, int64_t right, int64_t correct, int64_t seed = 0) {
  RunAnswers run;
  run.label.seed = seed;
  for (int64_t i = 0; i < problems; ++i) {
    ProblemAnswers& p = run.problems.emplace_back();
    p.source = source;
    p.id = str(i);
    p.content = str(i);
    p.greedy = i < right;
    p.samples = 8;
    p.correct = correct;
  }
  return run;
}

AnswerGroup group_of(const std::string& title, std::vector<RunAnswers> runs) {
  AnswerGroup group;
  group.title = title;
  group.runs = std::move(runs);
  return group;
}

RunAnswers both(RunAnswers a, const RunAnswers& b) {
  a.problems.insert(a.problems.end(), b.problems.begin(), b.problems.end());
  return a;
}

const ComparedMetric& metric(const Comparison& c, std::string_view key) {
  for (const ComparedMetric& m : c.metrics) {
    if (m.key == key) return m;
  }
  throw Error(ErrorKind::empty, std::string(key));
}

TEST(models, greedy_answers_of_two_models_are_compared_by_mcnemars_exact_test) {
  const std::vector<AnswerGroup> groups = {group_of("base", {run_of("a", 100, 20, 1)}),
                                           group_of("trained", {run_of("a", 100, 45, 1)})};
  const Comparison c = compare_models(groups, {});
  const Contrast& d = metric(c, "greedy").contrast[1][0];
  EXPECT_NEAR(d.change.value, 0.25, 1e-12);
  EXPECT_EQ(d.gained, 25);
  EXPECT_EQ(d.lost, 0);
  EXPECT_EQ(d.p, mcnemar(25, 0));
  EXPECT_TRUE(d.significant);
  EXPECT_NE(comparison_text(c).find("higher"), std::string::npos);
}

TEST(models, a_small_difference_is_called_not_significant) {
  const std::vector<AnswerGroup> groups = {group_of("base", {run_of("a", 30, 10, 4)}),
                                           group_of("trained", {run_of("a", 30, 12, 4)})};
  const Comparison c = compare_models(groups, {});
  EXPECT_FALSE(metric(c, "greedy").contrast[1][0].significant);
  const std::string text = comparison_text(c);
  EXPECT_NE(text.find("not significant"), std::string::npos);
  EXPECT_EQ(text.find("higher"), std::string::npos);
}

TEST(models, macro_counts_benchmarks_equally_and_micro_counts_problems_equally) {
  const std::vector<AnswerGroup> groups = {
      group_of("base", {both(run_of("small", 10, 0, 0), run_of("large", 90, 45, 4))}),
      group_of("trained", {both(run_of("small", 10, 10, 8), run_of("large", 90, 45, 4))})};
  const Comparison c = compare_models(groups, {});
  ASSERT_EQ(c.sets.size(), 4u);
  EXPECT_EQ(c.sets[2].name, "macro");
  EXPECT_EQ(c.sets[3].problems, 100);
  for (const std::string key : {"greedy", "mean@8"}) {
    const auto& contrast = metric(c, key).contrast[1];
    EXPECT_NEAR(contrast[0].change.value, 1, 1e-12) << key;
    EXPECT_NEAR(contrast[1].change.value, 0, 1e-12) << key;
    EXPECT_NEAR(contrast[2].change.value, 0.5, 1e-12) << key;
    EXPECT_NEAR(contrast[3].change.value, 0.1, 1e-12) << key;
    EXPECT_FALSE(contrast[1].significant) << key;
  }
  EXPECT_EQ(metric(c, "greedy").comparisons, 8);  // with mean@8, of four sets
}

TEST(models, several_seeds_are_paired_and_their_spread_decides) {
  std::vector<RunAnswers> a, b, c;
  for (int64_t seed : {0, 1, 2, 3}) {
    a.push_back(run_of("a", 100, 40 + 10 * seed, 4, seed));
    b.push_back(run_of("a", 100, 45 + 10 * seed + (seed == 2), 4, seed));  // always about five points more
    c.push_back(run_of("a", 100, seed % 2 ? 80 : 35, 4, seed));            // now more, now less
  }
  std::reverse(b.begin(), b.end());  // the order of the runs does not matter
  const std::vector<AnswerGroup> groups = {group_of("base", a), group_of("b", b), group_of("c", c)};
  const Comparison compared = compare_models(groups, {});
  const ComparedMetric& greedy = metric(compared, "greedy");
  EXPECT_NEAR(greedy.contrast[1][0].change.value, 0.0525, 1e-12);
  EXPECT_TRUE(greedy.contrast[1][0].significant) << greedy.contrast[1][0].p_holm;
  EXPECT_FALSE(greedy.contrast[2][0].significant);
  EXPECT_NE(greedy.contrast[1][0].basis.find("t over 4 seeds and over problems"), std::string::npos)
      << greedy.contrast[1][0].basis;
  EXPECT_NEAR(greedy.cell[0][0].deviation, deviation_of(std::vector<double>{0.4, 0.5, 0.6, 0.7}), 1e-12);
}

TEST(models, holm_takes_back_what_many_comparisons_find_by_chance) {
  // One set of many with p = 0.039 on its own (McNemar 8 to 1): nothing to write home about among five.
  RunAnswers a, b;
  for (int set = 0; set < 5; ++set) {
    for (int64_t i = 0; i < 60; ++i) {
      ProblemAnswers p;
      p.source = str("s", set);
      p.id = str(i);
      p.greedy = i == 0 ? 1 : i <= 8 && set == 0 ? 0 : i % 2;
      a.problems.push_back(p);
      p.greedy = i == 0 && set == 0 ? 0 : i == 0 ? 1 : i <= 8 && set == 0 ? 1 : i % 2;
      b.problems.push_back(p);
    }
  }
  const Comparison c =
      compare_models(std::vector<AnswerGroup>{group_of("a", {a}), group_of("b", {b})}, ModelsOptions{});
  const Contrast& first = metric(c, "greedy").contrast[1][0];
  EXPECT_EQ(first.gained, 8);
  EXPECT_EQ(first.lost, 1);
  EXPECT_LT(first.p, 0.05);
  EXPECT_GT(first.change.low, 0);
  EXPECT_GT(first.p_holm, 0.05);
  EXPECT_FALSE(first.significant);
  EXPECT_NE(comparison_text(c).find("not significant after the correction"), std::string::npos);
}

TEST(models, models_that_answer_alike_are_not_known_to_be_equal) {
  const std::vector<AnswerGroup> groups = {group_of("x", {run_of("a", 20, 0, 0)}),
                                           group_of("y", {run_of("a", 20, 0, 0)})};
  const Comparison compared = compare_models(groups, {});
  const Figure& change = metric(compared, "mean@8").contrast[1][0].change;
  EXPECT_EQ(change.value, 0);
  EXPECT_NEAR(change.high, 1 - std::pow(0.025, 1.0 / 20), 1e-9);
  EXPECT_EQ(change.low, -change.high);
}

TEST(models, only_common_problems_count_and_the_others_are_said) {
  RunAnswers less = run_of("a", 50, 25, 4);
  less.problems.resize(40);
  less.problems[3].content = "another question";
  const Comparison c = compare_models(
      std::vector<AnswerGroup>{group_of("x", {run_of("a", 50, 25, 4)}), group_of("y", {less})}, ModelsOptions{});
  EXPECT_EQ(c.sets[0].problems, 40);
  ASSERT_EQ(c.warnings.size(), 2u);
  EXPECT_NE(c.warnings[0].find("10 problems that not every run answered"), std::string::npos);
  EXPECT_NE(c.warnings[1].find("1 problem has one id but different"), std::string::npos);
  EXPECT_THROW(compare_models(std::vector<AnswerGroup>{group_of("x", {run_of("a", 5, 2, 4)}),
                                                       group_of("y", {run_of("b", 5, 2, 4)})},
                              ModelsOptions{}),
               Error);
}

TEST(models, settings_that_differ_come_first_and_the_seed_is_no_reason_to_warn) {
  RunAnswers a = run_of("a", 10, 5, 4), b = run_of("a", 10, 5, 4);
  a.settings = {{"template", "qwen_math (1)"}, {"max_tokens", "1024"}, {"seed", "0"}};
  b.settings = {{"template", "orz (2)"}, {"max_tokens", "1024"}, {"seed", "1"}};
  Comparison c = compare_models(std::vector<AnswerGroup>{group_of("x", {a}), group_of("y", {b})}, ModelsOptions{});
  ASSERT_EQ(c.differing.size(), 2u);
  EXPECT_EQ(c.differing[0], "template: x qwen_math (1), y orz (2)");
  ASSERT_EQ(c.warnings.size(), 1u);
  EXPECT_NE(c.warnings[0].find("not like for like: template differs"), std::string::npos);
  EXPECT_TRUE(comparison_text(c).starts_with("warning: not like for like"));
}

TEST(models, what_a_run_does_not_record_is_said_and_not_taken_for_a_difference) {
  RunAnswers a = run_of("a", 10, 5, 4), b = run_of("a", 10, 5, 4);
  a.settings = {{"template", "qwen_math (1)"}, {"max_tokens", "1024"}};
  b.settings = {{"max_tokens", "1024"}};
  const Comparison c =
      compare_models(std::vector<AnswerGroup>{group_of("x", {a}), group_of("y", {b})}, ModelsOptions{});
  EXPECT_TRUE(c.differing.empty());
  ASSERT_EQ(c.warnings.size(), 1u);
  EXPECT_EQ(c.warnings[0], "y does not record template: whether these agree is not known");
}

TEST(models, a_set_without_samples_has_no_mean_and_no_average_over_sets) {
  RunAnswers run = both(run_of("math", 10, 5, 4), run_of("choices", 10, 5, 4));
  for (ProblemAnswers& p : run.problems) {
    if (p.source == "choices") p.samples = p.correct = 0;
  }
  const Comparison c =
      compare_models(std::vector<AnswerGroup>{group_of("x", {run}), group_of("y", {run})}, ModelsOptions{});
  const ComparedMetric& mean = metric(c, "mean@8");
  EXPECT_NEAR(mean.cell[0][0].value.value, 0.5, 1e-12);
  for (size_t set : {1, 2, 3}) EXPECT_TRUE(std::isnan(mean.cell[0][set].value.value));
  EXPECT_FALSE(std::isnan(metric(c, "greedy").cell[0][2].value.value));
}

TEST(models, published_figures_are_marked_and_change_no_test) {
  PublishedTable table;
  table.title = "An article";
  table.source = "its Table 1";
  table.rows.resize(2);
  table.rows[0].name = "Theirs";
  table.rows[0].size = "7B";
  table.rows[0].figure = {{"a", "greedy", 68.7, kUnknown, ""}};
  table.rows[1].name = "Other";
  table.rows[1].figure = {{"elsewhere", "greedy", 12, kUnknown, ""}};
  std::vector<PublishedTable> published = {table};
  const Comparison c = compare_models(
      std::vector<AnswerGroup>{group_of("x", {run_of("a", 10, 5, 4)}), group_of("y", {run_of("a", 10, 6, 4)})},
      ModelsOptions{});
  const std::string text = comparison_text(c, published);
  EXPECT_NE(text.find("Theirs 7B (published)"), std::string::npos);
  EXPECT_EQ(text.find("Doubtful"), std::string::npos);
  published[0].rows[0].figure[0].doubt = "no count of 83 problems";
  published[0].rows[0].doubts = {"a single run"};
  const std::string doubted = comparison_text(c, published);
  EXPECT_NE(doubted.find("68.7?"), std::string::npos) << doubted;
  EXPECT_NE(
      doubted.find("  Doubtful (? in the table):\n    Theirs 7B (published)\n      a 68.7 is no count of 83 problems\n"
                   "      a single run\n"),
      std::string::npos)
      << doubted;
  published[0] = table;
  EXPECT_NE(text.find("68.7"), std::string::npos);
  EXPECT_EQ(text.find("Other"), std::string::npos);
  EXPECT_NE(text.find("Source: its Table 1. Not measured here"), std::string::npos);
  EXPECT_EQ(metric(c, "greedy").comparisons, 2);
}

TEST(models, the_level_reaches_the_intervals_of_one_run_each_and_of_several) {
  std::vector<RunAnswers> a, b;
  for (int64_t seed : {0, 1, 2}) {
    a.push_back(run_of("a", 200, 80 + 3 * seed, 4, seed));
    b.push_back(run_of("a", 200, 90 + seed, 5, seed));
  }
  const auto width = [&](double level, size_t runs, const std::string& key) {
    ModelsOptions options;
    options.level = level;
    const std::vector<AnswerGroup> groups = {group_of("a", {a.begin(), a.begin() + static_cast<std::ptrdiff_t>(runs)}),
                                             group_of("b", {b.begin(), b.begin() + static_cast<std::ptrdiff_t>(runs)})};
    const Comparison c = compare_models(groups, options);
    const Figure &change = metric(c, key).contrast[1][0].change, &value = metric(c, key).cell[1][0].value;
    return std::pair{change.high - change.low, value.high - value.low};
  };
  for (size_t runs : {1, 3}) {
    EXPECT_LT(width(0.8, runs, "greedy").first, 0.75 * width(0.95, runs, "greedy").first) << runs;
    EXPECT_LT(width(0.8, runs, "greedy").second, 0.75 * width(0.95, runs, "greedy").second) << runs;
    EXPECT_GT(width(0.99, runs, "greedy").first, 1.2 * width(0.95, runs, "greedy").first) << runs;
  }
}

TEST(models, the_mean_that_is_quoted_is_of_all_samples) {
  RunAnswers x = run_of("a", 40, 20, 0), y = x;
  for (size_t i = 0; i < 40; ++i) {
    for (RunAnswers* run : {&x, &y}) {
      run->problems[i].samples = 64;
      run->problems[i].correct = run == &x ? 16 : 32;
    }
  }
  const Comparison c =
      compare_models(std::vector<AnswerGroup>{group_of("x", {x}), group_of("y", {y})}, ModelsOptions{});
  EXPECT_EQ(metric(c, "mean@16").contrast[1][0].change.value, 0.25);
  EXPECT_EQ(metric(c, "mean@16").family, "greedy pass@1 and mean@16");
  EXPECT_EQ(std::ranges::count(c.metrics, "mean@64", &ComparedMetric::key), 0);
}

}  // namespace
}  // namespace ucas

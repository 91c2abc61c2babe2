#include "cli/study_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

// An evaluation of problems "0", "1" ... of sources by turns, right greedy responses given, c of 4 samples right.
EvalRecord record(const std::vector<int>& right, const std::vector<int64_t>& correct,
                  const std::vector<std::string>& sources = {"a"}) {
  EvalRecord e;
  e.name = "test";
  double sum = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    ProblemRow row;
    row.id = str(i);
    row.source = sources[i % sources.size()];
    row.has_greedy = true;
    row.greedy.verdict = right[i] ? "equal" : "unequal";
    row.samples = 4;
    row.correct = correct[i];
    e.rows.push_back(row);
    sum += right[i];
  }
  e.greedy.value = sum / static_cast<double>(right.size());
  e.entropy = 0.5;
  return e;
}

TEST(study_table, values_of_one_source_and_the_mean_of_sources_come_from_the_problems) {
  EvalRecord e = record({1, 0, 1, 0, 1}, {4, 0, 2, 2, 3}, {"a", "b"});  // a: 0, 2, 4; b: 1, 3
  EXPECT_DOUBLE_EQ(evaluation_value(e, "greedy"), 0.6);
  EXPECT_DOUBLE_EQ(evaluation_value(e, "greedy:a"), 1.0);
  EXPECT_DOUBLE_EQ(evaluation_value(e, "greedy:b"), 0.0);
  EXPECT_DOUBLE_EQ(evaluation_value(e, "greedy:macro"), 0.5);
  EXPECT_DOUBLE_EQ(evaluation_value(e, "mean@4:a"), 0.75);
  EXPECT_DOUBLE_EQ(evaluation_value(e, "pass@4:b"), 0.5);
  EXPECT_TRUE(std::isnan(evaluation_value(e, "mean@8")));
  EXPECT_DOUBLE_EQ(evaluation_value(e, "entropy"), 0.5);
  EXPECT_EQ(expand_column("greedy:*", {"x", "y"}), (std::vector<std::string>{"greedy:x", "greedy:y"}));
  EXPECT_THROW(evaluation_value(e, "graedy"), Error);
  EXPECT_THROW(expand_column("pass@0", {}), Error);
}

TEST(study_table, the_paired_t_test_is_that_of_the_textbook) {
  // Differences 0.1, 0.2, 0.3, 0.4 of ten problems each: t = 0.25 / (0.1290994 / 2) = 3.872983, p = 0.0304662 (scipy
  // ttest_rel), 95 % interval 0.25 -+ 3.182446 * 0.0645497.
  std::vector<EvalRecord> a, b;
  for (int s = 1; s <= 4; ++s) {
    std::vector<int> zeros(10, 0), ones(10, 0);
    for (int i = 0; i < s; ++i) ones[static_cast<size_t>(i)] = 1;
    a.push_back(record(zeros, std::vector<int64_t>(10, 0)));
    b.push_back(record(ones, std::vector<int64_t>(10, 0)));
  }
  PairedRuns d = compare_pairs({&a[0], &a[1], &a[2], &a[3]}, {&b[0], &b[1], &b[2], &b[3]}, "greedy", 0);
  EXPECT_EQ(d.seeds, 4);
  EXPECT_EQ(d.problems, 10);
  EXPECT_NEAR(d.over_seeds.value, 0.25, 1e-12);
  EXPECT_NEAR(d.p, 0.0304662, 1e-6);
  EXPECT_NEAR(d.over_seeds.low, 0.25 - 3.182446 * 0.0645497, 1e-5);
  EXPECT_LT(d.over_both.low, 0.25);
  EXPECT_GT(d.over_both.high, 0.25);
}

TEST(study_table, equal_runs_are_never_told_apart_and_one_seed_has_the_bootstrap_alone) {
  EvalRecord a = record({1, 0, 1, 0, 1, 1, 0, 0}, {4, 0, 2, 2, 3, 1, 1, 0});
  PairedRuns same = compare_pairs({&a, &a}, {&a, &a}, "mean@4", 3);
  EXPECT_EQ(same.p, 1);
  EXPECT_FALSE(same.told_apart());
  EvalRecord better = record({1, 1, 1, 1, 1, 1, 1, 1}, {4, 4, 4, 4, 4, 4, 4, 4});
  PairedRuns one = compare_pairs({&a}, {&better}, "mean@4", 3);
  EXPECT_FALSE(one.over_seeds.bounded());
  EXPECT_TRUE(one.has_bootstrap);
  EXPECT_TRUE(one.told_apart());
  EXPECT_TRUE(std::isnan(one.p));
}

TEST(study_table, a_difference_of_few_seeds_that_scatter_is_not_claimed_though_problems_alone_would) {
  // Seed 0 gains on all 40 problems, seed 1 on none: over problems certain, over seeds nothing.
  EvalRecord low = record(std::vector<int>(40, 0), std::vector<int64_t>(40, 0));
  EvalRecord high = record(std::vector<int>(40, 1), std::vector<int64_t>(40, 4));
  PairedRuns d = compare_pairs({&low, &low}, {&high, &low}, "greedy", 0);
  EXPECT_NEAR(d.over_seeds.value, 0.5, 1e-12);
  EXPECT_FALSE(d.told_apart());
}

TEST(study_table, sources_weigh_the_same_in_the_mean_of_sources) {
  // a: 30 problems, no change; b: 10 problems, all gained. Mean over sources 0.5.
  std::vector<std::string> turns = {"a", "a", "a", "b"};
  std::vector<int> before(40, 0), after(40, 0);
  for (size_t i = 3; i < 40; i += 4) after[i] = 1;
  EvalRecord a = record(before, std::vector<int64_t>(40, 0), turns),
             b = record(after, std::vector<int64_t>(40, 0), turns);
  PairedRuns d = compare_pairs({&a}, {&b}, "greedy:macro", 0);
  EXPECT_NEAR(d.over_seeds.value, 0.5, 1e-12);
  EXPECT_NEAR(d.over_both.low, 0.5, 1e-12);  // within a source nothing scatters
  EXPECT_NEAR(d.over_both.high, 0.5, 1e-12);
}

// A run directory with one evaluation of four problems.
std::string write_run(const testing::TemporaryDirectory& home, const std::string& name, const std::string& label,
                      int seed, const std::string& alpha, int right) {
  std::string run = path_join(home.path(), name);
  make_directories(path_join(run, "eval"));
  if (seed >= 0) {
    write_file(path_join(run, "config.toml"), str("label = \"", label, "\"\nseed = ", seed,
                                                  "\n[method]\nname = \"ucas\"\nalpha = ", alpha, "\nbeta = 0.5\n"));
  } else {
    write_file(path_join(run, "env.json"), str("{\"label\": \"", label, "\"}\n"));
  }
  std::string rows;
  for (int i = 0; i < 4; ++i) {
    std::string verdict = i < right ? "equal" : "unequal";
    rows += str("{\"id\": \"", i,
                "\", \"source\": \"s\", \"problem\": \"p\", \"gold\": [\"1\"], \"greedy\": {\"response\": \"1\", "
                "\"verdict\": \"",
                verdict,
                "\", \"answer\": \"1\", \"tokens\": 3}, \"samples\": 0, \"correct\": 0, "
                "\"mean_length\": 3, \"responses\": []}\n");
  }
  write_file(path_join(run, "eval/test.jsonl"), rows);
  double share = right / 4.0;
  write_file(
      path_join(run, "eval/test.json"),
      str("{\"label\": \"x\", \"model\": \"m\", \"data\": \"test\", \"step\": null, \"problems\": 4, \"samples\": 0, "
          "\"greedy\": {\"pass@1\": {\"value\": ",
          share,
          ", \"low\": 0, \"high\": 1}}, \"entropy\": 0.5, \"length\": 3, "
          "\"truncated_share\": 0, \"unparseable_share\": 0}\n"));
  return run;
}

TEST(study_table, the_table_holds_rows_means_comparison_seeds_and_the_map) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs = {write_run(home, "base", "base", -1, "", 0)};
  for (int seed : {0, 1}) runs.push_back(write_run(home, str("low-seed", seed), "low", seed, "0.1", 1 + seed));
  for (int seed : {0, 1}) runs.push_back(write_run(home, str("high-seed", seed), "hi|gh", seed, "0.2", 3 + seed));
  TableOptions options;
  options.title = "Title";
  options.command = "ucas study x";
  options.axes = {"method.alpha", "method.beta"};
  options.each_seed = true;
  StudyTable table = study_table(runs, options);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.reference, "low");
  EXPECT_TRUE(table.rows[1].against.empty());
  ASSERT_EQ(table.rows[2].against.size(), 1u);
  EXPECT_EQ(table.rows[2].against[0].seeds, 2);
  std::string text = table_markdown(table);
  for (const char* part :
       {"# Title", "| low | 37.5 +- 17.7 | 0.500 +- 0.000 |", "| hi\\|gh | 87.5 +- 17.7 |", "| alpha \\ beta | 0.5 |",
        "| 0.2 | 87.5 +- 17.7 |", "| low | 1 | 50.0 |", "## Against low", "| hi\\|gh | greedy | +50.0 |"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  std::string csv = table_csv(table);
  EXPECT_NE(csv.find("\"test\",\"low\",1,greedy,0.5,,1,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\"test\",\"hi|gh\",all,greedy,0.875,"), std::string::npos) << csv;
  EXPECT_NE(table_tex(table).find("low & 37.5 $\\pm$ 17.7"), std::string::npos) << table_tex(table);
  EXPECT_NE(table_text(table).find("greedy %"), std::string::npos);
}

TEST(study_table, a_run_without_the_evaluation_is_said_by_its_path) {
  testing::TemporaryDirectory home;
  TableOptions options;
  options.eval = "math5";
  std::string run = write_run(home, "base", "base", -1, "", 0);
  try {
    study_table({run}, options);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("math5"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ucas

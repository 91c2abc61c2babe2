#include "report/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/file.h"
#include "base/str.h"
#include "report/series.h"
#include "support/synthetic_run.h"

namespace ucas {
namespace {

// A run held in memory: greedy accuracy, and which of ten problems its greedy response solves.
RunRecord run_of(const std::string& label, const std::string& method, int64_t seed, double greedy, int64_t solved) {
  RunRecord run;
  run.name = str(label, method, seed);
  run.label = label;
  run.method = method;
  run.seed = seed;
  if (!method.empty()) run.config = {{"method.name", method}, {"seed", str(seed)}};
  EvalRecord evaluation;
  evaluation.data = "ten";
  evaluation.problems = 10;
  evaluation.samples = 4;
  evaluation.temperature = 1;
  evaluation.greedy = {greedy, greedy - 0.1, greedy + 0.1};
  evaluation.pass_at = {{1, {greedy, kUnknown, kUnknown}}, {4, {0.9, kUnknown, kUnknown}}};
  evaluation.entropy = 0.5;
  for (int64_t i = 0; i < 10; ++i) {
    ProblemRow row;
    row.id = str(i);
    row.has_greedy = true;
    row.greedy.verdict = i < solved ? "equal" : "unequal";
    evaluation.rows.push_back(row);
  }
  run.evaluations.push_back(std::move(evaluation));
  return run;
}

TEST(groups, runs_that_differ_in_the_seed_alone_are_one_group_and_the_untrained_stand_first) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 1, 0.5, 5), run_of("", "dapo", 0, 0.5, 5),
                                 run_of("base", "", 0, 0.1, 1)};
  auto groups = group_runs(runs);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].title, "base");
  EXPECT_EQ(groups[1].title, "DAPO");
  EXPECT_EQ(groups[1].seeds(), "seeds 0, 1");
}

TEST(groups, runs_with_other_settings_are_never_mixed_and_say_what_differs) {
  std::vector<RunRecord> runs = {run_of("", "ucas", 0, 0.5, 5), run_of("", "ucas", 0, 0.5, 5)};
  runs[0].config.emplace_back("method.alpha", "0.1");
  runs[1].config.emplace_back("method.alpha", "0.25");
  auto groups = group_runs(runs);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].title, "UCAS (alpha 0.1)");
  EXPECT_EQ(groups[1].title, "UCAS (alpha 0.25)");
}

TEST(summary, several_seeds_give_mean_deviation_and_a_t_interval) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 0.90, 9), run_of("", "dapo", 1, 0.92, 9),
                                 run_of("", "dapo", 2, 0.94, 9)};
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  ASSERT_EQ(results.size(), 1u);
  const SummaryCell& cell = results[0].rows[0].cells[0];
  EXPECT_NEAR(cell.mean, 0.92, 1e-12);
  EXPECT_NEAR(cell.deviation, 0.02, 1e-12);
  EXPECT_NEAR(cell.interval.low, 0.92 - 4.3027 * 0.02 / std::sqrt(3.0), 1e-4);
  EXPECT_NE(summary_table(results).find("92.0 +- 2.0"), std::string::npos) << summary_table(results);
}

TEST(summary, methods_are_compared_seed_by_seed_and_a_difference_inside_the_interval_is_not_claimed) {
  std::vector<RunRecord> runs;
  double dapo[] = {0.90, 0.92, 0.94}, ucas[] = {0.91, 0.91, 0.95};
  for (int64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(run_of("base", "", seed, 0.1 + 0.01 * static_cast<double>(seed), 1));
    runs.push_back(run_of("", "dapo", seed, dapo[seed], 9));
    runs.push_back(run_of("", "ucas", seed, ucas[seed], 9));
  }
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  const auto& differences = results[0].differences;
  ASSERT_EQ(differences.size(), 3u);  // DAPO and UCAS from base, UCAS from DAPO
  EXPECT_TRUE(differences[0].told_apart());
  EXPECT_NE(differences[0].sentence.find("DAPO, greedy pass@1: 81.0 points higher than base"), std::string::npos)
      << differences[0].sentence;
  EXPECT_FALSE(differences[2].told_apart());
  EXPECT_NEAR(differences[2].change.value, 0.01 / 3, 1e-12);
  EXPECT_NE(differences[2].sentence.find("not distinguishable from DAPO"), std::string::npos)
      << differences[2].sentence;
  EXPECT_NE(differences[2].sentence.find("3 seeds, paired"), std::string::npos);
}

TEST(summary, several_seeds_that_began_at_one_base_are_each_compared_with_it) {
  std::vector<RunRecord> runs = {run_of("base", "", 0, 0.1, 1)};
  for (int64_t seed = 0; seed < 3; ++seed)
    runs.push_back(run_of("", "dapo", seed, 0.9 + 0.01 * static_cast<double>(seed), 9));
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  const Difference& d = results[0].differences.at(0);
  EXPECT_NEAR(d.change.value, 0.81, 1e-12);
  EXPECT_NEAR(d.change.high - d.change.value, 4.3027 * 0.01 / std::sqrt(3.0), 1e-4);
  EXPECT_NE(d.basis.find("3 seeds against one run"), std::string::npos) << d.basis;
}

TEST(summary, single_runs_are_compared_problem_by_problem) {
  std::vector<RunRecord> runs = {run_of("base", "", 0, 0.1, 1), run_of("", "dapo", 0, 1.0, 10)};
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  const Difference& d = results[0].differences.at(0);
  EXPECT_NEAR(d.change.value, 0.9, 1e-12);
  EXPECT_NE(d.basis.find("10 problems, paired"), std::string::npos) << d.basis;
  EXPECT_TRUE(d.told_apart());
}

TEST(summary, without_rows_to_pair_there_is_no_claim) {
  std::vector<RunRecord> runs = {run_of("base", "", 0, 0.1, 1), run_of("", "dapo", 0, 1.0, 10)};
  runs[0].evaluations[0].rows.clear();
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  EXPECT_TRUE(results[0].differences.empty());
  EXPECT_EQ(results[0].unclaimed, 1u);
  EXPECT_NE(summary_table(results).find("No claim about 1 other difference"), std::string::npos);
}

TEST(summary, methods_at_the_ceiling_are_said_to_be_there) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 1.0, 10), run_of("", "ucas", 0, 0.995, 10)};
  auto groups = group_runs(runs);
  EXPECT_NE(summary_table(results_of(groups)).find("at its ceiling"), std::string::npos);
  runs[1].evaluations[0].greedy.value = 0.9;
  EXPECT_EQ(summary_table(results_of(groups)).find("at its ceiling"), std::string::npos);
}

TEST(summary, the_latest_evaluation_speaks_for_a_run) {
  RunRecord run = run_of("", "dapo", 0, 0.9, 9);
  run.evaluations[0].step = 24;
  EvalRecord early = run.evaluations[0];
  early.step = 12;
  early.greedy.value = 0.5;
  run.evaluations.push_back(early);
  EXPECT_EQ(final_evaluation(run, "ten")->greedy.value, 0.9);
  EXPECT_EQ(final_evaluation(run, "another"), nullptr);
}

TEST(series, means_and_deviations_are_over_the_runs_that_have_the_step) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 0.9, 9), run_of("", "dapo", 1, 0.9, 9)};
  runs[0].steps.step = {1, 2, 3};
  runs[0].steps.column["x"] = {1, 2, kUnknown};
  runs[1].steps.step = {1, 2};
  runs[1].steps.column["x"] = {3, kUnknown};
  auto groups = group_runs(runs);
  Series series = series_of(groups, "x", 100);
  EXPECT_EQ(series.x, (std::vector<double>{1, 2}));
  EXPECT_EQ(series.groups[0].mean, (std::vector<double>{2, 2}));
  EXPECT_NEAR(series.groups[0].deviation[0], std::sqrt(2.0), 1e-12);
  EXPECT_TRUE(std::isnan(series.groups[0].deviation[1]));
  EXPECT_TRUE(series_of(groups, "unknown", 100).empty());
}

TEST(series, long_runs_are_thinned_and_keep_their_last_step) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 0.9, 9)};
  for (int i = 1; i <= 1000; ++i) {
    runs[0].steps.step.push_back(i);
    runs[0].steps.column["x"].push_back(i);
  }
  auto groups = group_runs(runs);
  Series series = series_of(groups, "x", 100);
  EXPECT_EQ(series.stride, 10);
  EXPECT_LE(series.x.size(), 101u);
  EXPECT_EQ(series.x.back(), 1000);
}

}  // namespace
}  // namespace ucas

#include "report/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/files/file.h"
#include "base/str.h"
#include "report/page/curves.h"
#include "support/synthetic_run.h"

namespace ucas {
namespace {

// A run held in memory: which of its problems the greedy response solves, from the front.
RunRecord run_of(const std::string& label, const std::string& method, int64_t seed, int64_t solved,
                 int64_t problems = 10) {
  RunRecord run;
  run.name = str(label, method, seed);
  run.label = label;
  run.method = method;
  run.seed = seed;
  if (!method.empty()) run.config = {{"method.name", method}, {"seed", str(seed)}};
  const double greedy = static_cast<double>(solved) / static_cast<double>(problems);
  EvalRecord evaluation;
  evaluation.data = "ten";
  evaluation.problems = problems;
  evaluation.config.samples = 4;
  evaluation.config.temperature = 1;
  evaluation.greedy = {greedy, greedy - 0.1, greedy + 0.1};
  evaluation.pass_at = {{1, {greedy, kUnknown, kUnknown}}, {4, {0.9, kUnknown, kUnknown}}};
  evaluation.entropy = 0.5;
  for (int64_t i = 0; i < problems; ++i) {
    ProblemRow row;
    row.id = str(i);
    row.greedy.emplace().verdict = i < solved ? VerdictKind::equal : VerdictKind::unequal;
    evaluation.rows.push_back(row);
  }
  run.evaluations.push_back(std::move(evaluation));
  return run;
}

TEST(groups, runs_that_differ_in_the_seed_alone_are_one_group_and_the_untrained_stand_first) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 1, 5), run_of("", "dapo", 0, 5), run_of("base", "", 0, 1)};
  auto groups = group_runs(runs);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].title, "base");
  EXPECT_EQ(groups[1].title, "DAPO");
  EXPECT_EQ(groups[1].seeds(), "seeds 0, 1");
}

TEST(groups, runs_with_other_settings_are_never_mixed_and_say_what_differs) {
  std::vector<RunRecord> runs = {run_of("", "ucas", 0, 5), run_of("", "ucas", 0, 5)};
  runs[0].config.emplace_back("method.alpha", "0.1");
  runs[1].config.emplace_back("method.alpha", "0.25");
  auto groups = group_runs(runs);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].title, "UCAS (alpha 0.1)");
  EXPECT_EQ(groups[1].title, "UCAS (alpha 0.25)");
}

TEST(groups, an_adapter_is_named_by_its_rank_and_none_is_full) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 5), run_of("", "dapo", 0, 5)};
  runs[0].config = {{"lora.rank", "0"}, {"lora.alpha", "16.0"}, {"optimizer.lr", "1e-05"}};
  runs[1].config = {{"lora.rank", "16"}, {"lora.alpha", "32.0"}, {"optimizer.lr", "1e-05"}};
  const auto groups = group_runs(runs);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].title, "DAPO (full)");
  EXPECT_EQ(groups[1].title, "DAPO (LoRA 16, alpha 32.0)");
}

TEST(groups, runs_that_began_with_other_weights_or_other_data_are_never_seeds_of_one_group) {
  for (const char* key : {"model", "data.files"}) {  // of runs that recorded no hashes
    std::vector<RunRecord> runs = {run_of("", "dapo", 0, 5), run_of("", "dapo", 1, 5)};
    runs[0].config.emplace_back(key, "/models/Qwen2.5-Math-1.5B");
    runs[1].config.emplace_back(key, "/models/Qwen2.5-Math-7B");
    const auto groups = group_runs(runs);
    ASSERT_EQ(groups.size(), 2u) << key;
    const std::string what = str(key) == "model" ? "DAPO (model " : "DAPO (data ";
    EXPECT_EQ(groups[0].title, what + "models/Qwen2.5-Math-1.5B)");
  }
  for (const char* key : {"initial_weights", "training_data"}) {
    std::vector<RunRecord> runs = {run_of("", "dapo", 0, 5), run_of("", "dapo", 1, 5)};
    runs[0].env[key] = "1a2b3c4d5e";
    runs[1].env[key] = "99aabbccdd";
    const auto groups = group_runs(runs);  // the paths are the same, what lies there is not
    ASSERT_EQ(groups.size(), 2u) << key;
    EXPECT_NE(groups[0].title.find("1a2b3c4d"), std::string::npos) << groups[0].title;
  }
}

TEST(groups, copies_with_other_paths_and_the_same_hashes_are_one_group) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 5), run_of("", "dapo", 1, 5)};
  for (size_t i : {0, 1}) {
    runs[i].env = {{"initial_weights", "aa"}, {"training_data", "bb"}};
    runs[i].config.emplace_back("model", str("/machine", i, "/model"));
    runs[i].config.emplace_back("data.files", str("/machine", i, "/train.jsonl"));
  }
  EXPECT_EQ(group_runs(runs).size(), 1u);
}

TEST(groups, a_setting_with_a_slash_is_a_setting) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 5), run_of("", "dapo", 1, 5)};
  runs[0].config.emplace_back("data.template", "mine/short.toml");
  runs[1].config.emplace_back("data.template", "mine/long.toml");
  EXPECT_EQ(group_runs(runs).size(), 2u);
}

TEST(groups, runs_of_one_row_of_a_study_are_one_group_whatever_base_they_began_with) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 5), run_of("", "dapo", 1, 5)};
  for (size_t i : {0, 1}) {
    runs[i].row = "dapo";
    runs[i].base = str(i);
    runs[i].env["initial_weights"] = str("weights ", i);
  }
  EXPECT_EQ(group_runs(runs).size(), 1u);
}

TEST(groups, untrained_models_of_one_label_are_one_group_only_as_seeds_of_one_model) {
  std::vector<RunRecord> runs = {run_of("base", "", 0, 1), run_of("base", "", 1, 1)};
  runs[0].env["model"] = "/a/model";
  runs[1].env["model"] = "/b/model";
  EXPECT_EQ(group_runs(runs).size(), 2u);
  runs[0].name = "base-seed0";
  runs[1].name = "base-seed1";
  EXPECT_EQ(group_runs(runs).size(), 1u);
}

// 64 samples of each problem.
void sample(RunRecord& run, int64_t right) {
  EvalRecord& e = run.evaluations[0];
  e.config.samples = 64;
  for (ProblemRow& row : e.rows) {
    row.samples = 64;
    row.correct = right;
  }
  const Figure share = {static_cast<double>(right) / 64, kUnknown, kUnknown};
  e.mean_at = {{16, share}, {64, share}};
}

TEST(summary, the_sentence_is_of_the_mean_that_the_table_shows) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 9), run_of("", "ucas", 0, 9)};
  sample(runs[0], 40);
  sample(runs[1], 44);
  const auto groups = group_runs(runs);
  const auto results = results_of(groups);
  const Difference& d = results[0].differences.at(1);
  EXPECT_EQ(d.metric, "mean@16");
  const auto column = std::ranges::find(results[0].columns, d.metric, &SummaryColumn::key);
  ASSERT_NE(column, results[0].columns.end());
  const auto c = static_cast<size_t>(column - results[0].columns.begin());
  EXPECT_NEAR(d.contrast.change.value, results[0].rows[1].cells[c].mean - results[0].rows[0].cells[c].mean, 1e-12);
}

TEST(summary, the_p_of_one_table_are_corrected_together) {
  // Six runs against the first, each alone with p = 0.039 (McNemar 8 to 1).
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 40, 80)};
  for (int64_t i = 0; i < 6; ++i) {
    runs.push_back(run_of(str("run ", i), "ucas", 0, 48, 80));
    runs.back().evaluations[0].rows[0].greedy->verdict = VerdictKind::unequal;
  }
  const auto groups = group_runs(runs);
  const auto results = results_of(groups);
  ASSERT_EQ(results[0].differences.size(), 6u);
  EXPECT_EQ(results[0].comparisons, 6);
  for (const Difference& d : results[0].differences) {
    EXPECT_LT(d.contrast.p, 0.05);
    EXPECT_NEAR(d.contrast.p_holm, 6 * d.contrast.p, 1e-12);
    EXPECT_NE(d.sentence.find("not significant after the correction"), std::string::npos) << d.sentence;
    EXPECT_NE(d.sentence.find("p = 0.039, corrected 0.234"), std::string::npos) << d.sentence;
  }
}

TEST(summary, problems_of_two_sources_with_one_id_are_not_paired_with_each_other) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 5), run_of("", "ucas", 0, 5)};
  for (RunRecord& run : runs) {
    for (size_t i = 0; i < 10; ++i) {
      run.evaluations[0].rows[i].source = i < 5 ? "a" : "b";
      run.evaluations[0].rows[i].id = str(i % 5);
    }
  }
  for (ProblemRow& row : runs[1].evaluations[0].rows)
    row.greedy->verdict = row.source == "b" ? VerdictKind::equal : VerdictKind::unequal;
  const auto groups = group_runs(runs);
  const Contrast d = results_of(groups)[0].differences.at(0).contrast;
  EXPECT_EQ(d.problems, 10);
  EXPECT_EQ(d.gained, 5);
  EXPECT_EQ(d.lost, 5);
}

TEST(summary, several_seeds_give_mean_deviation_and_a_t_interval) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 90, 100), run_of("", "dapo", 1, 92, 100),
                                 run_of("", "dapo", 2, 94, 100)};
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
  int64_t dapo[] = {90, 92, 94}, ucas[] = {91, 91, 95};
  for (int64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(run_of("base", "", seed, 10 + seed, 100));
    runs.push_back(run_of("", "dapo", seed, dapo[seed], 100));
    runs.push_back(run_of("", "ucas", seed, ucas[seed], 100));
  }
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  const auto& differences = results[0].differences;
  ASSERT_EQ(differences.size(), 3u);  // DAPO and UCAS from base, UCAS from DAPO
  EXPECT_TRUE(differences[0].contrast.significant);
  EXPECT_NE(differences[0].sentence.find("DAPO, greedy pass@1: 81.0 points higher than base"), std::string::npos)
      << differences[0].sentence;
  EXPECT_FALSE(differences[2].contrast.significant);
  EXPECT_NEAR(differences[2].contrast.change.value, 0.01 / 3, 1e-12);
  EXPECT_NE(differences[2].sentence.find("the difference from DAPO is not significant"), std::string::npos)
      << differences[2].sentence;
  EXPECT_NE(differences[2].sentence.find("t over 3 seeds and over problems, 100 problems"), std::string::npos);
}

TEST(summary, several_seeds_that_began_at_one_base_are_each_compared_with_it) {
  std::vector<RunRecord> runs = {run_of("base", "", 0, 100, 1000)};
  for (int64_t seed = 0; seed < 3; ++seed) runs.push_back(run_of("", "dapo", seed, 900 + 10 * seed, 1000));
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  const Difference& d = results[0].differences.at(0);
  EXPECT_NEAR(d.contrast.change.value, 0.81, 1e-12);
  EXPECT_GE(d.contrast.change.high - d.contrast.change.value, 4.3027 * 0.01 / std::sqrt(3.0) - 1e-4);
  EXPECT_NE(d.contrast.basis.find("t over 3 seeds against the untrained model"), std::string::npos) << d.contrast.basis;
}

TEST(summary, single_runs_are_compared_problem_by_problem) {
  std::vector<RunRecord> runs = {run_of("base", "", 0, 1), run_of("", "dapo", 0, 10)};
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  const Difference& d = results[0].differences.at(0);
  EXPECT_NEAR(d.contrast.change.value, 0.9, 1e-12);
  EXPECT_NE(d.sentence.find("McNemar's exact test, 10 problems"), std::string::npos) << d.contrast.basis;
  EXPECT_TRUE(d.contrast.significant);
}

TEST(summary, without_rows_to_pair_there_is_no_claim) {
  std::vector<RunRecord> runs = {run_of("base", "", 0, 1), run_of("", "dapo", 0, 10)};
  runs[0].evaluations[0].rows.clear();
  auto groups = group_runs(runs);
  auto results = results_of(groups);
  EXPECT_TRUE(results[0].differences.empty());
}

TEST(summary, the_latest_evaluation_speaks_for_a_run) {
  RunRecord run = run_of("", "dapo", 0, 9);
  run.evaluations[0].step = 24;
  EvalRecord early = run.evaluations[0];
  early.step = 12;
  early.greedy.value = 0.5;
  run.evaluations.push_back(early);
  EXPECT_EQ(final_evaluation(run, "ten")->greedy.value, 0.9);
  EXPECT_EQ(final_evaluation(run, "another"), nullptr);
}

TEST(series, means_and_deviations_are_over_the_runs_that_have_the_step) {
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 9), run_of("", "dapo", 1, 9)};
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
  std::vector<RunRecord> runs = {run_of("", "dapo", 0, 9)};
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

TEST(summary, seeds_that_all_reached_the_same_have_no_interval) {
  SummaryCell alike, apart;
  alike.values = {1.0, 1.0, 1.0};
  apart.values = {1.0, 0.99, 1.0};
  conclude(alike, true);
  conclude(apart, true);
  EXPECT_FALSE(alike.interval.bounded());
  EXPECT_TRUE(apart.interval.bounded());
  EXPECT_EQ(apart.interval.high, 1.0);
}

}  // namespace
}  // namespace ucas

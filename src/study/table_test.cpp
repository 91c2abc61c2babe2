#include "study/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

std::vector<Quantity> quantities(const std::vector<std::string>& metrics) {
  std::vector<Quantity> out;
  for (const std::string& metric : metrics) out.push_back(parse_quantity(metric));
  return out;
}

// "steps_to" and the like at an accuracy.
Quantity at(const std::string& metric, const std::string& accuracy) {
  Quantity quantity = parse_quantity(metric);
  quantity.at = accuracy;
  return quantity;
}

TEST(study_table, steps_to_an_accuracy_and_the_validation_from_there_are_read_from_the_steps) {
  StepTable steps;
  steps.step = {1, 2, 3, 4};
  steps.column["train/accuracy"] = {0.2, kUnknown, 0.9, 0.8};
  steps.column["val-core/dev/acc/mean@1"] = {0.3, kUnknown, kUnknown, 0.7};
  EXPECT_EQ(training_value(steps, at("steps_to", "0.2")), 1);
  EXPECT_EQ(training_value(steps, at("steps_to", "0.85")), 3);
  EXPECT_TRUE(std::isnan(training_value(steps, at("steps_to", "0.95"))));
  EXPECT_EQ(training_value(steps, at("val_at", "0.2")), 0.3);
  EXPECT_EQ(training_value(steps, at("val_at", "0.85")), 0.7);
  EXPECT_TRUE(std::isnan(training_value(steps, at("val_at", "0.95"))));
  EXPECT_TRUE(std::isnan(training_value({}, at("steps_to", "0.2"))));
  steps.column["val-core/test/acc/mean@1"] = {0.5, kUnknown, 0.1, 0.9};
  EXPECT_EQ(training_value(steps, at("steps_to_val", "0.4")), 1);  // the mean of both sources
  EXPECT_EQ(training_value(steps, at("steps_to_val", "0.8")), 4);
  EXPECT_TRUE(std::isnan(training_value(steps, at("steps_to_val", "0.9"))));
}

// A run directory with one evaluation of four problems. `sampled`: right ones among the 8 samples of each.
std::string write_run(const testing::TemporaryDirectory& home, const std::string& name, const std::string& label,
                      int seed, const std::string& alpha, int right, const std::vector<int>& sampled = {}) {
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
                verdict, "\", \"answer\": \"1\", \"tokens\": 3}, \"samples\": ", sampled.empty() ? 0 : 8,
                ", \"correct\": ", sampled.empty() ? 0 : sampled[i], ", \"mean_length\": 3, \"responses\": []}\n");
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

// Of the base's 8 samples 8 - K say what it does not solve: with one right one of 8, K / 8 of the ways to choose them.
TEST(study_table, the_frontier_is_what_the_own_base_did_not_solve_and_the_base_asked_again_is_its_control) {
  testing::TemporaryDirectory home;
  const std::vector<std::string> runs = {
      write_run(home, "base", "base", -1, "", 0, {0, 0, 1, 8}),
      write_run(home, "one-seed0", "one", 0, "0.1", 2, {8, 0, 8, 0}),
      write_run(home, "one-seed1", "one", 1, "0.1", 4, {4, 1, 8, 8}),
  };
  TableOptions options;
  options.columns = quantities({"frontier@4", "frontier@1", "pass@8", "frontier@8"});
  options.columns.insert(options.columns.begin() + 3, at("reached", "0.6"));
  const StudyTable table = study_table(runs, options);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(table.rows[0].cells[0].values[0], 0.5 / 4);  // the third problem, where its right one is not seen
  EXPECT_DOUBLE_EQ(table.rows[0].cells[1].values[0], 0.125 / 4);
  EXPECT_DOUBLE_EQ(table.rows[1].cells[0].values[0], (1 + 0.5) / 4);
  const double pass_of_4 = 1 - 1.0 / 70;                                            // 4 of 8 right, 4 sampled
  EXPECT_DOUBLE_EQ(table.rows[1].cells[0].values[1], (pass_of_4 + 0.5 + 0.5) / 4);  // one of 8 right: 4 / 8
  EXPECT_DOUBLE_EQ(table.rows[1].cells[1].values[0], (1 + 0.125) / 4);
  EXPECT_DOUBLE_EQ(table.rows[1].cells[1].values[1], (0.5 + 0.125 + 0.125) / 4);
  EXPECT_TRUE(
      std::isnan(table.rows[1].cells[4].mean));  // all samples of the base say what it does not solve: no control
  EXPECT_EQ(table.rows[1].cells[2].values, (std::vector{0.5, 1.0}));
  EXPECT_EQ(table.rows[1].cells[3].values, (std::vector{0.0, 1.0}));
  EXPECT_NE(table_markdown(table).find("The base's own row is the control"), std::string::npos);
}

// The same base is below itself, with another prompt: what the runs are held against is the first.
TEST(study_table, a_base_with_another_prompt_is_a_row_and_not_the_base_of_the_runs) {
  testing::TemporaryDirectory home;
  const std::vector<std::string> runs = {
      write_run(home, "base", "base", -1, "", 0, {0, 0, 1, 8}),
      write_run(home, "base-plain", "base, plain", -1, "", 2, {8, 8, 8, 8}),
      write_run(home, "one-seed0", "one", 0, "0.1", 2, {8, 0, 8, 0}),
  };
  TableOptions options;
  options.columns = quantities({"frontier@4", "greedy"});
  const StudyTable table = study_table(runs, options);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[1].title, "base, plain");
  EXPECT_EQ(table.rows[1].cells[1].mean, 0.5);
  EXPECT_DOUBLE_EQ(table.rows[0].cells[0].mean, 0.5 / 4);
  EXPECT_DOUBLE_EQ(table.rows[1].cells[0].mean, 2.5 / 4);  // as a model, against the first
  EXPECT_DOUBLE_EQ(table.rows[2].cells[0].mean, 1.5 / 4);
  EXPECT_EQ(table.reference, "one");
}

TEST(study_table, mixed_counts_samples_that_are_neither_all_right_nor_all_wrong) {
  testing::TemporaryDirectory home;
  TableOptions options;
  options.columns = quantities({"mixed@2", "mixed@8", "mixed@16"});
  const StudyTable table = study_table({write_run(home, "m", "m", 0, "0.1", 0, {0, 8, 4, 1})}, options);
  EXPECT_DOUBLE_EQ(table.rows[0].cells[0].mean, (16.0 / 28 + 7.0 / 28) / 4);  // pairs of a right and a wrong one
  EXPECT_DOUBLE_EQ(table.rows[0].cells[1].mean, 0.5);
  EXPECT_TRUE(std::isnan(table.rows[0].cells[2].mean));
}

TEST(study_table, gates_and_decision_are_printed) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs = {write_run(home, "base", "base", -1, "", 0, {0, 0, 1, 8})};
  for (int seed : {0, 1, 2}) {
    runs.push_back(write_run(home, str("dapo-seed", seed), "DAPO", seed, "0.1", 2, {4, 4, 0, seed}));
    runs.push_back(write_run(home, str("ucas-seed", seed), "UCAS", seed, "0.2", 2, {4, 4, 0, seed % 2}));
  }
  const Quantity mean = parse_quantity("mean@8"), pass = parse_quantity("pass@8");
  TableOptions options;
  options.columns = {mean, pass};
  options.compare = {mean};
  options.gates = {{"base", "", "m", "", false, 0.25, kUnknown, mean, mean},
                   {"DAPO", "base", "p", "m", false, kUnknown, 0.1, pass, mean}};
  options.decide = {"UCAS", 0.01, 0.033, {}};
  const StudyTable table = study_table(runs, options);
  ASSERT_EQ(table.gates.size(), 2u);
  EXPECT_TRUE(table.gates[0].held);
  EXPECT_FALSE(table.gates[1].held);
  const std::string text = table_markdown(table);
  for (const char* part : {"- held, base.mean@8 >= 0.25: 0.281", "- **failed**, DAPO.pass@8", "nothing is concluded",
                           "## Decision", "undecided, as a gate failed; by the differences alone: "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

// What the untrained model is above or below is no claim of the study, and not every row is the decision's.
TEST(study_table, the_decision_s_row_other_trained_rows_and_the_base_are_families_of_their_own) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs = {write_run(home, "base", "base", -1, "", 0, {0, 0, 1, 8})};
  for (int seed : {0, 1, 2}) {
    runs.push_back(write_run(home, str("dapo-seed", seed), "DAPO", seed, "0.1", 2, {4, 4, 0, seed}));
    runs.push_back(write_run(home, str("ucas-seed", seed), "UCAS", seed, "0.2", 2, {5, 6, 1, (seed * 2) % 3}));
    runs.push_back(write_run(home, str("other-seed", seed), "other", seed, "0.3", 2, {5, 5, 1, (seed * seed) % 3}));
  }
  TableOptions options;
  options.columns = options.compare = quantities({"mean@8", "pass@4"});
  options.reference = "DAPO";
  options.decide = {"UCAS", 0.01, 0.033, {}};
  const StudyTable table = study_table(runs, options);
  EXPECT_EQ(table.decided, 2);
  EXPECT_EQ(table.trained, 2);
  EXPECT_EQ(table.untrained, 2);
  for (const StudyRow& row : table.rows) {
    for (const Contrast& c : row.against) EXPECT_LE(c.p_holm, 2 * c.p + 1e-12) << row.title;
  }
  EXPECT_NE(
      table_markdown(table).find("p corrected by Holm over the 2 comparisons of UCAS, apart from the 2 comparisons "
                                 "of the other trained rows, apart from the 2 comparisons of the untrained model"),
      std::string::npos);
}

// Seed 3 of UCAS is missing: three seeds are complete, and the first look is at two, at its own level.
TEST(study_table, a_decision_with_looks_takes_the_seeds_of_the_last_look_that_is_reached) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs;
  const std::vector<std::vector<int>> dapo = {{4, 4, 0, 0}, {4, 4, 0, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}};
  for (int seed : {0, 1, 2, 3}) {
    runs.push_back(write_run(home, str("dapo-seed", seed), "DAPO", seed, "0.1", 2, dapo[seed]));
    if (seed < 3) runs.push_back(write_run(home, str("ucas-seed", seed), "UCAS", seed, "0.2", 2, {8, 7, 2, 4 + seed}));
  }
  TableOptions options;
  options.columns = options.compare = quantities({"mean@8"});
  options.reference = "DAPO";
  options.decide = {.row = "UCAS", .helps_from = 0.01, .looks = {2, 4}};
  const StudyTable table = study_table(runs, options);
  EXPECT_EQ(table.complete_seeds, 3);
  EXPECT_EQ(table.look, 2);
  EXPECT_EQ(table.rows[0].runs.size(), 2u);
  EXPECT_NEAR(table.options.statistics.level, 1 - 0.00517, 1e-4);
  EXPECT_NE(table_markdown(table).find("| 99.5 % interval |"), std::string::npos);
  EXPECT_NE(table.decision.find(" at 2 of 4 seeds: mean@8 +"), std::string::npos) << table.decision;
  options.decide.looks = {8, 16};
  const StudyTable early = study_table(runs, options);
  EXPECT_EQ(early.decision, "undecided: 3 of 8 seeds for the first look");
  EXPECT_TRUE(early.rows[1].against[0].known());
  EXPECT_FALSE(early.rows[1].against[0].change.bounded());
  EXPECT_TRUE(std::isnan(early.rows[1].against[0].p));
  EXPECT_NE(table_markdown(early).find("| not tested |"), std::string::npos);
  EXPECT_NE(table_markdown(early).find("Nothing is tested before 8 seeds."), std::string::npos);
}

TEST(study_table, a_column_of_each_source_is_one_for_each) {
  testing::TemporaryDirectory home;
  TableOptions options;
  options.columns = {{"greedy", "", 0, "each"}, {"greedy", "", 0, "macro"}};
  const StudyTable table = study_table({write_run(home, "m", "m", 0, "0.1", 2)}, options);
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[0].text(), "greedy:s");
}

TEST(study_table, a_placebo_is_compared_with_the_row_of_the_decision_and_not_with_the_reference) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs;
  for (int seed : {0, 1, 2}) {
    runs.push_back(write_run(home, str("dapo-seed", seed), "DAPO", seed, "0.1", 2, {4, 4, 0, seed}));
    runs.push_back(write_run(home, str("ucas-seed", seed), "UCAS", seed, "0.2", 2, {8, 7, 2, 4 + seed % 2}));
    runs.push_back(write_run(home, str("permuted-seed", seed), "permuted", seed, "0.3", 2, {4, 3, 2, 1 + seed}));
  }
  TableOptions options;
  options.columns = options.compare = quantities({"mean@8"});
  options.reference = "DAPO";
  options.decide = {"UCAS", 0.01, 0.033, {"permuted"}};
  const StudyTable table = study_table(runs, options);
  EXPECT_EQ(table.decided, 1);
  EXPECT_TRUE(std::ranges::find(table.rows, "permuted", &StudyRow::title)->against.empty());
  ASSERT_EQ(table.placebos.size(), 1u);
  EXPECT_EQ(table.placebos[0].title, "permuted");
  ASSERT_EQ(table.placebos[0].below.size(), 1u);
  EXPECT_DOUBLE_EQ(table.placebos[0].below[0].change.value, (11 + 11 + 9) / 3.0 / 32);
  EXPECT_NE(table.decision.find("; above permuted: mean@8 +32.3"), std::string::npos) << table.decision;
}

// A run that never arrives counts: leaving it out would make the row that fails look quick.
TEST(study_table, a_run_that_never_reaches_an_accuracy_counts_as_one_step_more_than_it_was_to_take) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs = {write_run(home, "base", "base", -1, "", 0)};
  const auto train = [&](const std::string& label, int seed, const std::vector<double>& accuracy) {
    runs.push_back(write_run(home, str(label, "-seed", seed), label, seed, label == "slow" ? "0.1" : "0.2", 2));
    std::string steps;
    for (size_t i = 0; i < accuracy.size(); ++i) {
      steps += str("{\"training/global_step\": ", i + 1, ", \"train/accuracy\": ", accuracy[i],
                   ", \"val-core/dev/acc/mean@1\": ", accuracy[i], "}\n");
    }
    write_file(path_join(runs.back(), "steps.jsonl"), steps);
    const std::string config = path_join(runs.back(), "config.toml");
    write_file(config, read_file(config) + "[train]\nsteps = 6\n");
  };
  for (int seed : {0, 1, 2}) train("slow", seed, {0.1, 0.2, 0.3, 0.8 + 0.01 * seed, 0.9, 0.9});
  train("torn", 0, {0.1, 0.8});
  train("torn", 1, {0.1, 0.2, 0.3, 0.3});  // ended before the others
  train("torn", 2, {0.1, 0.2, 0.3, 0.3, 0.3, 0.3});
  TableOptions options;
  options.columns = {at("steps_to", "0.75"), at("steps_to_val", "0.75"), at("val_at", "0.75")};
  options.compare = {at("steps_to", "0.75")};
  options.each_seed = true;
  const StudyTable table = study_table(runs, options);
  ASSERT_EQ(table.rows.size(), 3u);
  const StudyCell& torn = table.rows[2].cells[0];
  EXPECT_EQ(torn.values, (std::vector{2.0, 7.0, 7.0}));
  EXPECT_EQ(torn.never(), 2u);
  EXPECT_EQ(table.rows[2].cells[1].values, torn.values);
  EXPECT_TRUE(std::isnan(table.rows[2].cells[2].values[1]));  // there is no accuracy from a step that never came
  EXPECT_TRUE(std::isnan(table.rows[0].cells[0].mean));       // the base has no steps
  EXPECT_DOUBLE_EQ(table.rows[2].against[0].change.value, (2 + 7 + 7) / 3.0 - 4);
  EXPECT_NE(table.rows[2].against[0].basis.find("2 runs that never got there"), std::string::npos);
  const std::string text = table_markdown(table);
  for (const char* part : {">= 5.33 +- 2.89 (1 of 3)", "| torn | 1 | >= 7.00 | >= 7.00 | - |", "a lower bound"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(study_table, a_base_that_was_asked_more_often_does_not_decide_what_is_quoted) {
  testing::TemporaryDirectory home;
  const std::string base = write_run(home, "base", "base", -1, "", 0, {0, 0, 1, 8});
  const std::string run = write_run(home, "one-seed0", "one", 0, "0.1", 2, {1, 0, 1, 0});
  std::string rows = read_file(path_join(run, "eval/test.jsonl"));
  for (size_t at = 0; (at = rows.find("\"samples\": 8", at)) != std::string::npos;)
    rows.replace(at, 12, "\"samples\": 4");
  write_file(path_join(run, "eval/test.jsonl"), rows);
  const StudyTable table = study_table({base, run}, {});
  EXPECT_EQ(table.compare, quantities({"greedy", "mean@4"}));
}

TEST(study_table, crossed_bases_and_seeds_have_a_deviation_each) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs;
  const int right[2][2] = {{0, 2}, {3, 3}};  // of four: 0 and 50 % from one base, 75 % twice from the other
  for (int base : {0, 1}) {
    for (int seed : {0, 1}) {
      runs.push_back(write_run(home, str("b", base, "-seed", seed), "row", seed, "0.1", right[base][seed]));
      write_file(path_join(runs.back(), "study.json"),
                 str("{\"row\": \"row\", \"base\": \"base ", base, "\", \"seed\": ", seed, "}\n"));
    }
  }
  const std::string text = table_markdown(study_table(runs, {}));
  // Means 25 and 75 %: deviation 35.4; within: variances 0.125 and 0, their mean 0.0625.
  EXPECT_NE(text.find("| row | greedy % | 50.0 | 35.4 | 25.0 |"), std::string::npos) << text;
}

TEST(study_table, the_table_holds_rows_means_comparison_and_seeds) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs = {write_run(home, "base", "base", -1, "", 0)};
  for (int seed : {0, 1}) runs.push_back(write_run(home, str("low-seed", seed), "low", seed, "0.1", 1 + seed));
  for (int seed : {0, 1}) runs.push_back(write_run(home, str("high-seed", seed), "hi|gh", seed, "0.2", 3 + seed));
  TableOptions options;
  options.title = "Title";
  options.command = "ucas study x";
  options.each_seed = true;
  StudyTable table = study_table(runs, options);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.reference, "low");
  EXPECT_TRUE(table.rows[1].against.empty());
  ASSERT_EQ(table.rows[2].against.size(), 1u);
  EXPECT_EQ(table.rows[2].against[0].runs, 2);
  EXPECT_EQ(table.untrained, 1);  // the base against low
  EXPECT_EQ(table.trained, 0);    // high less low is the same for both seeds: not estimable
  std::string text = table_markdown(table);
  for (const char* part :
       {"# Title", "| low | 37.5 +- 17.7 | 0.500 +- 0.000 |", "| hi\\|gh | 87.5 +- 17.7 |", "| low | 1 | 50.0 |",
        "## Against low", "| hi\\|gh | greedy | +50.0 | - | - | - | not estimable |",
        "mean +- standard deviation over 2 seeds"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_NE(table_text(table).find("greedy %"), std::string::npos);
}

TEST(study_table, the_deviation_says_whether_it_is_over_bases_seeds_or_both) {
  const auto over = [](const std::vector<RunLabel>& labels) {
    StudyTable table;
    table.rows.push_back({"", "base", false, {{"0", -1}, {"1", -1}}, {}, {}});
    table.rows.push_back({"", "row", true, labels, {}, {}});
    return table.deviation_over();
  };
  EXPECT_EQ(over({{"", 0}}), "");
  EXPECT_EQ(over({{"", 0}, {"", 1}}), "2 seeds");
  EXPECT_EQ(over({{"7", 0}, {"7", 1}}), "2 seeds of one base");
  EXPECT_EQ(over({{"0", 0}, {"1", 0}}), "2 bases, one seed");
  EXPECT_EQ(over({{"0", 0}, {"1", 1}}), "2 bases, each with a seed of its own");
  EXPECT_EQ(over({{"0", 0}, {"0", 1}, {"1", 0}, {"1", 1}}), "4 runs: 2 bases and 2 seeds");
}

TEST(study_table, bases_of_study_json_pair_rows_and_are_named) {
  testing::TemporaryDirectory home;
  std::vector<std::string> runs;
  const auto add = [&](const std::string& name, const std::string& row, int seed, int right, int label) {
    runs.push_back(write_run(home, name, row, seed, "0.1", right));
    write_file(path_join(runs.back(), "study.json"),
               str("{\"row\": \"", row, "\", \"base\": \"base ", label, "\", \"seed\": ", seed, "}\n"));
  };
  for (int base : {0, 1}) add(str("base", base), "base", -1, base, base);
  for (int base : {0, 1}) add(str("low", base), "low", base, 1 + base, base);
  for (int base : {0, 1}) add(str("high", base), "high", base, 2 + 2 * base, base);
  TableOptions options;
  options.each_seed = true;
  const StudyTable table = study_table(runs, options);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].runs, (std::vector<RunLabel>{{"base 0", -1}, {"base 1", -1}}));
  EXPECT_EQ(table.rows[0].against[0].runs, 2);  // each base next to the run that began with it
  EXPECT_NEAR(table.rows[2].against[0].change.value, 0.375, 1e-12);
  const std::string text = table_markdown(table);
  EXPECT_NE(text.find("over 2 bases, each with a seed of its own"), std::string::npos) << text;
  EXPECT_NE(text.find("| low | base 1 | 1 | 50.0 |"), std::string::npos) << text;
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

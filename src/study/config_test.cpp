#include "study/config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/embedded.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

Study read_text(const std::string& text, const std::vector<Setting>& overrides = {}) {
  testing::TemporaryDirectory directory;
  std::string path = path_join(directory.path(), "mine.toml");
  write_file(path, text);
  return read_study(path, overrides);
}

std::string refusal(const std::string& text) {
  try {
    read_text(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kTask = "[base]\ntask = \"register_chains\"\n";

TEST(study_config, rows_come_in_the_order_of_runs_with_shared_settings_below_their_own) {
  Study study = read_text(str("runs = [\"dapo-tiny\", \"stage1\"]\n", kTask,
                              "[all]\ntrain.steps = 50\n[run.stage1]\nconfig = \"ucas-tiny\"\nmethod.beta = 0\n"));
  EXPECT_EQ(study.name, "mine");
  EXPECT_EQ(study.config.out, "runs/mine");
  ASSERT_EQ(study.runs.size(), 2u);
  EXPECT_EQ(study.runs[0].config, "dapo-tiny");
  ASSERT_EQ(study.runs[0].settings.size(), 1u);
  EXPECT_EQ(study.runs[0].settings[0].key, "train.steps");
  EXPECT_EQ(study.runs[1].config, "ucas-tiny");
  ASSERT_EQ(study.runs[1].settings.size(), 2u);
  EXPECT_EQ(study.runs[1].settings[1].key, "method.beta");
}

TEST(study_config, the_command_line_overrides_the_file) {
  Study study = read_text(str("runs = [\"dapo-tiny\"]\nseeds = 2\n", kTask),
                          {{"seeds", "4", "--seeds", true}, {"all.train.steps", "3", "--all.train.steps", true}});
  EXPECT_EQ(study.config.seeds, 4);
  EXPECT_EQ(study.runs[0].settings.back().key, "train.steps");
}

TEST(study_config, what_cannot_be_meant_is_refused) {
  EXPECT_NE(refusal(kTask).find("runs is empty"), std::string::npos);
  EXPECT_NE(refusal("runs = [\"dapo-tiny\"]\n").find("base.task"), std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"a\", \"a\"]\n", kTask)).find("stands twice"), std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"a\"]\n", kTask, "[run.b]\nmethod.beta = 0\n")).find("not in runs"),
            std::string::npos);
  EXPECT_THROW(read_study("tiny-method", {}), Error);
}

TEST(study_config, a_grid_gives_a_row_for_each_combination_named_by_its_values) {
  Study study = read_text(str("kind = \"sensitivity\"\n", kTask,
                              "[all]\ntrain.steps = 5\n[grid]\nconfig = \"ucas-tiny\"\nmethod.alpha = [0, 0.25]\n"
                              "method.beta = [0, 0.005, 1]\n"));
  ASSERT_EQ(study.runs.size(), 6u);
  EXPECT_EQ(study.axes, (std::vector<std::string>{"method.alpha", "method.beta"}));
  EXPECT_EQ(study.runs[0].name, "alpha0-beta0");
  EXPECT_EQ(study.runs[4].name, "alpha0.25-beta0.005");
  EXPECT_EQ(study.runs[4].config, "ucas-tiny");
  ASSERT_EQ(study.runs[4].settings.size(), 4u);  // of [all], alpha, beta, label
  EXPECT_EQ(study.runs[4].settings[0].key, "train.steps");
  EXPECT_EQ(std::get<std::string>(study.runs[4].settings[2].value), "0.005");
  EXPECT_EQ(std::get<std::string>(study.runs[4].settings[3].value), "alpha 0.25, beta 0.005");
}

TEST(study_config, a_grid_with_held_values_varies_each_axis_alone) {
  Study study = read_text(str("kind = \"sensitivity\"\n", kTask,
                              "[grid]\nconfig = \"ucas-tiny\"\nmethod.alpha = [0.1, 0.2, 0.4]\n"
                              "method.beta = [0.005, 0.01]\n[grid.held]\nmethod.alpha = 0.2\nmethod.beta = 0.01\n"));
  std::vector<std::string> names;
  for (const StudyRun& run : study.runs) names.push_back(run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"alpha0.2-beta0.005", "alpha0.2-beta0.01", "alpha0.1-beta0.01",
                                             "alpha0.4-beta0.01"}));
  EXPECT_EQ(study.axes, (std::vector<std::string>{"method.alpha", "method.beta"}));
}

TEST(study_config, table_3_is_the_paper_s_grid) {
  const std::vector<Setting> given = {{"base.model", "m", "--base.model", true}};
  for (const char* name : {"paper-sensitivity", "tiny-sensitivity"}) {
    const std::string full = name;
    Study study = read_study(full, full.starts_with("paper") ? given : std::vector<Setting>{});
    std::vector<std::string> names;
    for (const StudyRun& run : study.runs) {
      if (run.name.starts_with("alpha")) names.push_back(run.name);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"alpha0.2-beta0.005", "alpha0.2-beta0.01", "alpha0.2-beta0.05",
                                               "alpha0.2-beta0.1", "alpha0.1-beta0.01", "alpha0.4-beta0.01"}))
        << name;
  }
}

TEST(study_config, an_axis_given_on_the_command_line_replaces_that_of_the_file) {
  const Setting axis{"grid.method.alpha", "0.1, 0.3", "--grid.method.alpha", true};
  Study study = read_text(
      str("kind = \"sensitivity\"\n", kTask, "[grid]\nconfig = \"ucas-tiny\"\nmethod.alpha = [0, 0.25, 0.4]\n"),
      {axis});
  ASSERT_EQ(study.runs.size(), 2u);
  EXPECT_EQ(study.runs[1].name, "alpha0.3");
}

TEST(study_config, a_kind_sets_what_it_needs_and_the_file_has_the_last_word) {
  EXPECT_EQ(read_text(str("runs = [\"dapo-tiny\"]\n", kTask)).config.evaluate.samples, 16);
  EXPECT_EQ(read_text(str("kind = \"passk\"\nruns = [\"dapo-tiny\"]\n", kTask)).config.evaluate.samples, 64);
  EXPECT_EQ(
      read_text(str("kind = [\"ablation\", \"passk\"]\nruns = [\"dapo-tiny\"]\n", kTask, "[evaluate]\nsamples = 8\n"))
          .config.evaluate.samples,
      8);
}

TEST(study_config, kinds_draw_their_figures_once_each) {
  Study study = read_text(
      str("kind = [\"methods\", \"ablation\", \"passk\"]\nmetric = \"greedy:macro\"\nruns = [\"dapo-tiny\"]\n", kTask));
  std::vector<FigureRequest> requests = figure_requests(study, {"a", "b"}, "test");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].kind, FigureKind::bars);
  EXPECT_EQ(requests[0].metric, "greedy");
  EXPECT_EQ(requests[1].kind, FigureKind::passk);
  EXPECT_EQ(requests[1].runs.size(), 2u);
}

TEST(study_config, paths_of_the_base_lie_below_data_unless_they_are_absolute) {
  Study study = read_text(
      "runs = [\"dapo-tiny\"]\ndata = \"sets\"\n[base]\nmodel = \"m\"\ntrain = [\"train/a.jsonl\", \"/b.jsonl\"]\n"
      "test = [\"c.jsonl\"]\n");
  EXPECT_EQ(study.config.base.train, (std::vector<std::string>{"sets/train/a.jsonl", "/b.jsonl"}));
  EXPECT_EQ(study.config.base.test, (std::vector<std::string>{"sets/c.jsonl"}));
}

TEST(study_config, kinds_grids_and_rows_that_cannot_be_are_refused_by_name) {
  EXPECT_NE(refusal(str("kind = \"ablations\"\nruns = [\"a\"]\n", kTask)).find("did you mean ablation?"),
            std::string::npos);
  EXPECT_NE(refusal(str("kind = \"sensitivity\"\nruns = [\"a\"]\n", kTask)).find("needs a [grid]"), std::string::npos);
  EXPECT_NE(refusal(str(kTask, "[grid]\nmethod.alpha = [0, 1]\n")).find("needs config"), std::string::npos);
  EXPECT_NE(refusal(str(kTask, "[grid]\nconfig = \"ucas-tiny\"\nmethod.alpha = 0.5\n")).find("a list of values"),
            std::string::npos);
  EXPECT_NE(refusal(str(kTask,
                        "[grid]\nconfig = \"ucas-tiny\"\nmethod.alpha = [0, 1]\nmethod.beta = [0, 1]\n"
                        "[grid.held]\nmethod.alpha = 0\n"))
                .find("no value of method.beta"),
            std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"a\"]\nreference = \"b\"\n", kTask)).find("reference = \"b\""), std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"../a\"]\n", kTask)).find("name of a row"), std::string::npos);
  EXPECT_NE(
      refusal(str("kind = \"confidence\"\nruns = [\"a\"]\n", kTask, "[evaluate]\ngreedy = false\n")).find("greedy"),
      std::string::npos);
  EXPECT_NE(
      refusal(str("kind = \"passk\"\nruns = [\"a\"]\n", kTask, "[evaluate]\nsamples = 1\n")).find("needs samples"),
      std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"a\"]\n", kTask, "suite = \"math5\"\n")).find("base.suite"), std::string::npos);
  EXPECT_NE(refusal("runs = [\"a\"]\n[base]\nmodel = \"m\"\ntrain = [\"t\"]\n").find("base.test and base.suite"),
            std::string::npos);
}

TEST(study_config, bases_that_cannot_be_paired_with_seeds_are_refused) {
  auto bases = [](const char* task, const char* list) {
    return refusal(str("seeds = 2\nruns = [\"a\"]\n[base]\n", task, "\nsft_seeds = ", list, "\n"));
  };
  EXPECT_EQ(bases("task = \"register_chains\"", "[4, 5]"), "");
  EXPECT_NE(bases("task = \"register_chains\"", "[4, 5, 6]").find("has 3 bases, seeds = 2"), std::string::npos);
  EXPECT_NE(bases("task = \"register_chains\"", "[4, 4]").find("a seed twice"), std::string::npos);
  EXPECT_NE(bases("model = \"m\"\ntrain = [\"t\"]\ntest = [\"t\"]", "[4, 5]").find("base.task is none"),
            std::string::npos);
  EXPECT_EQ(bases("task = \"register_chains\"\ncrossed = true", "[4, 5, 6]"), "");
  EXPECT_NE(bases("task = \"register_chains\"\ncrossed = true", "[]").find("name the bases"), std::string::npos);
  EXPECT_NE(bases("task = \"register_chains\"\nsamples = 3", "[4]").find("evaluate.samples = 16"), std::string::npos);
}

TEST(study_config, a_hidden_rule_has_the_options_of_its_task_unless_others_are_given) {
  const auto hidden = [](const char* base) {
    return read_text(str("runs = [\"a\"]\n[base]\n", base)).config.base.hidden;
  };
  EXPECT_EQ(hidden("task = \"hidden_steps\"").kind, RuleKind::step);
  EXPECT_EQ(hidden("task = \"hidden_steps\"").markers, hidden_steps().hidden.markers);
  EXPECT_EQ(hidden("task = \"hidden_steps\"\nhint = 0.5").hint, 0.5);
  EXPECT_EQ(hidden("task = \"hidden_rule\"\nhint = 0.5").habit, 0.8);
  EXPECT_TRUE(hidden("task = \"register_chains\"").markers.empty());
}

TEST(study_config, every_embedded_study_can_be_read) {
  const std::vector<Setting> given = {{"base.model", "m", "--base.model", true}};
  for (const std::string& file : embedded_names("studies/")) {
    std::string name = file.substr(8, file.size() - 13);
    Study study = read_study(name, !name.starts_with("tiny") ? given : std::vector<Setting>{});
    EXPECT_FALSE(study.runs.empty()) << name;
    EXPECT_NE(study.config.pool, "") << name << ": studies of one base share a pool";
    EXPECT_EQ(study.config.table, "") << name << ": an embedded study writes nothing outside its own place";
  }
}

}  // namespace
}  // namespace ucas

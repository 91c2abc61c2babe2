#include "study/config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
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
  EXPECT_NE(refusal(str("runs = [\"a\", \"a\"]\n", kTask)).find("duplicate"), std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"a\"]\n", kTask, "[run.b]\nmethod.beta = 0\n")).find("not in runs"),
            std::string::npos);
  EXPECT_THROW(read_study("tiny-method", {}), Error);
}

TEST(study_config, table_3_is_the_paper_s_grid) {
  const std::vector<Setting> given = {{"base.model", "m", "--base.model", true}};
  for (const std::string name : {"paper-sensitivity", "tiny-sensitivity"}) {
    std::vector<std::string> labels;
    for (const StudyRun& run : read_study(name, name.starts_with("paper") ? given : std::vector<Setting>{}).runs) {
      if (run.config.starts_with("ucas")) {
        const auto label = std::ranges::find(run.settings, "label", &Setting::key);
        ASSERT_NE(label, run.settings.end());
        labels.push_back(std::get<std::string>(label->value));
      }
    }
    EXPECT_EQ(labels, (std::vector<std::string>{"alpha 0.2, beta 0.005", "alpha 0.2, beta 0.01", "alpha 0.2, beta 0.05",
                                                "alpha 0.2, beta 0.1", "alpha 0.1, beta 0.01", "alpha 0.4, beta 0.01"}))
        << name;
  }
}

TEST(study_config, a_study_that_extends_another_has_its_settings_unless_it_has_its_own) {
  testing::TemporaryDirectory home;
  const auto write = [&](const char* name, const std::string& text) {
    const std::string path = path_join(home.path(), name);
    write_file(path, text);
    return path;
  };
  const std::string below = write("below.toml", str("seeds = 3\nruns = [\"dapo-tiny\", \"mine\"]\n", kTask,
                                                    "sft_seed = 7\n[all]\ntrain.steps = 5\n[run.dapo-tiny]\nlabel = "
                                                    "\"D\"\n[run.mine]\nconfig = \"ucas-tiny\"\n"));
  const Study study = read_study(write("above.toml", str("extends = \"", below,
                                                         "\"\nruns = [\"dapo-tiny\", \"other\"]\n[base]\nsft_seed = "
                                                         "8\n[run.other]\nconfig = \"grpo-tiny\"\n")),
                                 {});
  EXPECT_EQ(study.name, "above");
  EXPECT_EQ(study.config.seeds, 3);
  EXPECT_EQ(study.config.base.sft_seed, 8);
  EXPECT_TRUE(study.config.base.embedded());
  ASSERT_EQ(study.runs.size(), 2u);  // without the row that it does not name
  EXPECT_EQ(study.runs[0].settings.back().key, "label");
  EXPECT_EQ(study.runs[1].config, "grpo-tiny");
  EXPECT_EQ(study.runs[1].settings[0].key, "train.steps");
  const std::string itself = path_join(home.path(), "itself.toml");
  write_file(itself, str("extends = \"", itself, "\"\n"));
  EXPECT_THROW(read_study(itself, {}), Error);
}

TEST(study_config, columns_are_metrics_or_tables_of_metrics_and_sources) {
  const Study study = read_text(str(
      "runs = [\"dapo-tiny\"]\ncolumns = [\"greedy\", \"pass\", \"steps_to\"]\ncompare = [\"mean@16\"]\n", kTask,
      "[column.pass]\nmetric = [\"pass@4\", \"pass@8\"]\nsource = [\"each\", \"macro\"]\n[column.steps_to]\naccuracy = "
      "0.75\n"));
  std::vector<std::string> columns;
  for (const Quantity& column : study.columns) columns.push_back(column.text());
  EXPECT_EQ(columns, (std::vector<std::string>{"greedy", "pass@4:each", "pass@4:macro", "pass@8:each", "pass@8:macro",
                                               "steps_to@0.75"}));
  ASSERT_EQ(study.compare.size(), 1u);
  EXPECT_EQ(study.compare[0], parse_quantity("mean@16"));
  const auto with = [](const char* more) { return refusal(str("runs = [\"a\"]\n", more, kTask)); };
  for (const char* columns : {"[\"pass@0\"]", "[\"graedy\"]", "[\"mean\"]", "[\"greedy@3\"]"}) {
    EXPECT_NE(with(str("columns = ", columns, "\n").c_str()).find("expected greedy, mean@N"), std::string::npos)
        << columns;
  }
  EXPECT_NE(with("columns = [\"steps_to\"]\n").find("expected an accuracy"), std::string::npos);
  EXPECT_NE(with("columns = [\"greedy\"]\n[column.greedy]\naccuracy = 0.5\n").find("expected an accuracy"),
            std::string::npos);
}

TEST(study_config, gates_name_rows_and_columns_that_are_there) {
  const auto study = [](const char* gate) {
    return str("runs = [\"dapo-tiny\"]\ncolumns = [\"greedy\", \"entropy\"]\n[gate.g]\n", gate, kTask);
  };
  const Study read =
      read_text(study("row = \"dapo-tiny\"\ncolumn = \"entropy\"\nthan_row = \"base\"\nratio = true\nat_most = 0.5\n"));
  ASSERT_EQ(read.gates.size(), 1u);
  EXPECT_FALSE(read.gates[0].of_base());
  EXPECT_EQ(read.gates[0].than_quantity, parse_quantity("entropy"));
  for (const char* gate :
       {"row = \"base\"\ncolumn = \"length\"\nat_most = 1\n", "row = \"b\"\ncolumn = \"greedy\"\nat_most = 1\n",
        "row = \"base\"\ncolumn = \"greedy\"\n"}) {
    EXPECT_NE(refusal(study(gate)).find("[gate.g]"), std::string::npos) << gate;
  }
}

TEST(study_config, kinds_draw_their_figures_once_each) {
  Study study = read_text(str("kind = [\"methods\", \"ablation\", \"passk\"]\nruns = [\"dapo-tiny\"]\n", kTask));
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

TEST(study_config, kinds_and_rows_that_cannot_be_are_refused_by_name) {
  EXPECT_NE(refusal(str("kind = \"ablations\"\nruns = [\"a\"]\n", kTask)).find("did you mean ablation?"),
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
  }
}

}  // namespace
}  // namespace ucas

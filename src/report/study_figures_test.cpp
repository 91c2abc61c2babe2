#include "report/study_figures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "records/run_record.h"
#include "results/compare/groups.h"
#include "results/stats/spread.h"
#include "support/synthetic_run.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class study_figures_of_runs : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = set_log_sink([this](LogLevel level, const std::string& text) {
      if (level == LogLevel::warning) warned_ += text;
    });
  }
  void TearDown() override { set_log_sink(before_); }

  // Rows of a csv without quoted separators.
  static std::vector<std::vector<std::string>> rows(const std::string& csv) {
    std::vector<std::vector<std::string>> out;
    for (const std::string& line : split(csv, '\n')) {
      if (!line.empty()) out.push_back(split(line, ','));
    }
    return out;
  }
  static const StudyFigure* named(const std::vector<StudyFigure>& figures, const std::string& name) {
    for (const StudyFigure& figure : figures) {
      if (figure.name == name) return &figure;
    }
    return nullptr;
  }
  std::vector<StudyFigure> plot(FigureKind kind, std::vector<std::string> runs, std::string metric = "greedy",
                                std::vector<std::string> problems = {}) {
    return study_figures({kind, std::move(runs), "", std::move(metric), std::move(problems), sources_});
  }

  testing::TemporaryDirectory directory_;
  const std::string root_ = directory_.path();
  std::string warned_;
  std::vector<std::string> sources_;
  LogSink before_;
};

TEST_F(study_figures_of_runs, dynamics_holds_the_numbers_of_steps_jsonl) {
  auto runs = write_synthetic_demo(root_, 3);
  auto figures = plot(FigureKind::dynamics, runs);
  for (const char* name : {"dynamics-accuracy", "dynamics-reward", "dynamics-length", "dynamics-entropy"}) {
    ASSERT_NE(named(figures, name), nullptr) << name;
  }
  std::vector<double> at_step_7;
  for (int seed : {0, 1, 2}) {
    RunRecord run = read_run(str(root_, "/ucas-seed", seed));
    at_step_7.push_back((*run.steps.find("actor/entropy"))[6]);
  }
  bool found = false;
  for (const auto& row : rows(named(figures, "dynamics-entropy")->csv)) {
    if (row[0] != "UCAS" || row[1] != "7") continue;
    found = true;
    EXPECT_DOUBLE_EQ(std::stod(row[2]), mean_of(at_step_7));
    EXPECT_DOUBLE_EQ(std::stod(row[3]), deviation_of(at_step_7));
    EXPECT_EQ(row[6], "3");
  }
  EXPECT_TRUE(found);
}

TEST_F(study_figures_of_runs, equal_runs_give_equal_bytes) {
  auto runs = write_synthetic_demo(root_, 2);
  auto first = plot(FigureKind::passk, runs), second = plot(FigureKind::passk, runs);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].svg, second[0].svg);
  EXPECT_EQ(first[0].csv, second[0].csv);
}

TEST_F(study_figures_of_runs, passk_holds_the_evaluation_of_one_run_and_t_intervals_of_several) {
  auto runs = write_synthetic_demo(root_, 1);
  Json file = read_json(root_ + "/ucas-seed0/eval/final.json", 1 << 20);
  auto one = plot(FigureKind::passk, runs);
  ASSERT_EQ(one.size(), 1u);
  size_t found = 0;
  for (const auto& row : rows(one[0].csv)) {
    if (row[0] != "UCAS") continue;
    const Json& at = file["pass@k"][found++];
    EXPECT_EQ(row[1], str(at["k"].get<int64_t>()));
    EXPECT_DOUBLE_EQ(std::stod(row[2]), at["value"].get<double>());
    EXPECT_DOUBLE_EQ(std::stod(row[3]), at["low"].get<double>());
    EXPECT_DOUBLE_EQ(std::stod(row[4]), at["high"].get<double>());
  }
  EXPECT_EQ(found, 7u);

  auto several = plot(FigureKind::passk, write_synthetic_demo(root_ + "/more", 3));
  std::vector<double> values;
  for (int seed : {0, 1, 2}) {
    values.push_back(read_json(str(root_, "/more/ucas-seed", seed, "/eval/final.json"), 1 << 20)["pass@k"][0]["value"]
                         .get<double>());
  }
  Figure expected = mean_estimate(values);
  for (const auto& row : rows(several[0].csv)) {
    if (row[0] != "UCAS" || row[1] != "1") continue;
    EXPECT_DOUBLE_EQ(std::stod(row[2]), expected.value);
    EXPECT_DOUBLE_EQ(std::stod(row[3]), expected.low);
    EXPECT_DOUBLE_EQ(std::stod(row[4]), std::min(1.0, expected.high));
  }
}

TEST_F(study_figures_of_runs, bars_hold_mean_and_deviation_over_seeds) {
  auto figures = plot(FigureKind::bars, write_synthetic_demo(root_, 3), "mean@16");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].name, "bars-mean-16");
  std::vector<double> values;
  for (int seed : {0, 1, 2}) {
    values.push_back(
        read_json(str(root_, "/dapo-seed", seed, "/eval/final.json"), 1 << 20)["mean@k"][0]["value"].get<double>());
  }
  auto all = rows(figures[0].csv);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2][0], "DAPO");
  EXPECT_DOUBLE_EQ(std::stod(all[2][1]), mean_of(values));
  EXPECT_DOUBLE_EQ(std::stod(all[2][2]), deviation_of(values));
}

TEST_F(study_figures_of_runs, confidence_is_scored_over_the_problems_and_grouped_by_before_and_after) {
  auto figures = plot(FigureKind::confidence, write_synthetic_demo(root_, 1));
  ASSERT_EQ(figures.size(), 2u);  // DAPO and UCAS
  const StudyFigure& ucas = *named(figures, "confidence-ucas");
  RunRecord before = read_run(root_ + "/base-seed0"), after = read_run(root_ + "/ucas-seed0");
  auto all = rows(ucas.csv);
  ASSERT_EQ(all.size(), 65u);
  double sum = 0, squares = 0;
  int gained = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    const ProblemRow &b = before.evaluations[0].rows[i - 1], &a = after.evaluations[0].rows[i - 1];
    EXPECT_EQ(all[i][2], b.greedy->right() ? "1" : "0");
    EXPECT_EQ(all[i][3], a.greedy->right() ? "1" : "0");
    EXPECT_DOUBLE_EQ(std::stod(all[i][4]), b.greedy->confidence);
    EXPECT_DOUBLE_EQ(std::stod(all[i][5]), a.greedy->confidence);
    gained += all[i][2] == "0" && all[i][3] == "1";
    double z = std::stod(all[i][7]);
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum, 0, 1e-2);
  EXPECT_NEAR(squares, 63, 1e-1);
  EXPECT_NE(ucas.note.find(str("0-1 (gained): ", gained)), std::string::npos) << ucas.note;
}

TEST_F(study_figures_of_runs, of_evaluations_alone_the_first_model_is_the_one_before) {
  SyntheticRun first, second;
  first.label = "a";
  second.label = "b";
  second.seed = 3;
  auto runs = {write_synthetic_run(root_ + "/a", first), write_synthetic_run(root_ + "/b", second)};
  auto figures = plot(FigureKind::confidence, runs);
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].name, "confidence");
  EXPECT_NE(figures[0].note.find("a before, b after"), std::string::npos) << figures[0].note;
}

TEST_F(study_figures_of_runs, sets_asked_for_are_drawn_one_by_one) {
  SyntheticRun base, ucas;
  base.label = "base";
  ucas.method = "ucas";
  base.sources = ucas.sources = {"amc83", "math500"};
  const std::vector<std::string> runs = {write_synthetic_run(root_ + "/b", base),
                                         write_synthetic_run(root_ + "/u", ucas)};
  sources_ = {"math500"};
  auto scatter = plot(FigureKind::confidence, runs);
  ASSERT_EQ(scatter.size(), 1u);
  EXPECT_EQ(scatter[0].name, "confidence-math500");
  auto all = rows(scatter[0].csv);
  ASSERT_EQ(all.size(), 33u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i][0], "math500");

  sources_ = {};
  auto curves = plot(FigureKind::passk, runs);
  ASSERT_EQ(curves.size(), 2u) << "each set, not all problems together";
  EXPECT_EQ(curves[0].name, "passk-amc83");
  EXPECT_EQ(curves[1].name, "passk-math500");
  const Json by = read_json(root_ + "/u/eval/final.json", 1 << 20)["by_source"];
  for (size_t i : {0, 1}) {
    const std::string source = i == 0 ? "amc83" : "math500";
    for (const auto& row : rows(curves[i].csv)) {
      if (row[0] == "UCAS" && row[1] == "4") {
        EXPECT_DOUBLE_EQ(std::stod(row[2]), by[source]["pass@k"][1]["value"].get<double>()) << source;
      }
    }
    EXPECT_NE(curves[i].note.find(source + ", 32 problems"), std::string::npos) << curves[i].note;
    EXPECT_TRUE(curves[i].table.starts_with("|  | pass@1 % |")) << curves[i].table;
  }
  sources_ = {"minerva"};
  EXPECT_TRUE(plot(FigureKind::passk, runs).empty());
  EXPECT_NE(warned_.find("no evaluation has minerva; there is amc83, math500"), std::string::npos) << warned_;
}

TEST_F(study_figures_of_runs, many_levels_of_one_size_have_one_curve_together) {
  SyntheticRun run;
  run.method = "ucas";
  run.sources = {"rule0", "rule1", "rule2", "rule3"};
  EXPECT_EQ(plot(FigureKind::passk, {write_synthetic_run(root_ + "/four", run)}).size(), 4u);
  run.sources.push_back("rule4");
  const auto curves = plot(FigureKind::passk, {write_synthetic_run(root_ + "/five", run)});
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].name, "passk");
}

TEST_F(study_figures_of_runs, entropy_that_falls_and_recovers_is_told_from_one_that_stays_down) {
  auto course = [&](const char* name, double end) {
    SyntheticRun run;
    run.method = "ucas";
    run.label = name;
    run.steps = 40;
    std::string path = write_synthetic_run(str(root_, "/", name), run), text;
    for (int step = 1; step <= 40; ++step) {  // down to 0.2 at step 20, then on to `end`
      double entropy = step <= 20 ? 1 - 0.04 * step : 0.2 + (end - 0.2) * (step - 20) / 20;
      text += str("{\"training/global_step\": ", step, ", \"actor/entropy\": ", entropy, "}\n");
    }
    write_file(path + "/steps.jsonl", text);
    return path;
  };
  auto figures = plot(FigureKind::dynamics, {course("up", 0.6), course("down", 0.2)});
  const StudyFigure* entropy = named(figures, "dynamics-entropy");
  ASSERT_TRUE(entropy);
  // windows of two steps: the first's mean is 0.94, the tenth's (steps 19, 20) 0.22, the last's 0.59
  EXPECT_NE(entropy->table.find("| up | 0.940 | 0.220 | 20.0 | 0.590 | 0.370 |"), std::string::npos) << entropy->table;
  EXPECT_NE(entropy->table.find("| down | 0.940 | 0.200 | 22.0 | 0.200 | 0.000 | 0.000 |"), std::string::npos)
      << entropy->table;
  EXPECT_EQ(named(figures, "dynamics-reward"), nullptr);
}

TEST_F(study_figures_of_runs, a_band_ends_where_its_quantity_does) {
  std::vector<std::string> runs;
  for (int seed = 0; seed < 3; ++seed) {  // 0.01, 0.01, 0.9: the mean less one deviation is -0.21
    SyntheticRun run;
    run.method = "ucas";
    run.seed = seed;
    runs.push_back(write_synthetic_run(str(root_, "/seed", seed), run));
    std::string text;
    for (int step = 1; step <= 3; ++step) {
      text += str("{\"training/global_step\": ", step, ", \"actor/entropy\": ", seed == 2 ? 0.9 : 0.01,
                  ", \"critic/score/mean\": ", seed == 2 ? 0.9 : 0.01, "}\n");
    }
    write_file(runs.back() + "/steps.jsonl", text);
  }
  const auto figures = plot(FigureKind::dynamics, runs);
  ASSERT_TRUE(named(figures, "dynamics-entropy") && named(figures, "dynamics-reward"));
  // Numbers of an axis, with a minus sign (U+2212): a reward may be negative, an entropy is not.
  EXPECT_EQ(named(figures, "dynamics-entropy")->svg.find(">\xe2\x88\x92"), std::string::npos);
  EXPECT_NE(named(figures, "dynamics-reward")->svg.find(">\xe2\x88\x92"), std::string::npos);
}

TEST_F(study_figures_of_runs, validation_on_many_sets_is_drawn_as_their_mean) {
  auto validated = [&](const char* name, int sets) {
    SyntheticRun run;
    run.method = "ucas";
    std::string path = write_synthetic_run(str(root_, "/", name), run), text;
    for (int step = 1; step <= 2; ++step) {
      text += str("{\"training/global_step\": ", step);
      for (int set = 0; step == 2 && set < sets; ++set) {
        text += str(", \"val-core/s", set, "/acc/mean@1\": ", 0.1 * set);
      }
      text += "}\n";
    }
    write_file(path + "/steps.jsonl", text);
    return path;
  };
  auto four = plot(FigureKind::dynamics, {validated("four", 4)});
  EXPECT_TRUE(named(four, "dynamics-accuracy-s3"));
  EXPECT_FALSE(named(four, "dynamics-accuracy"));
  auto five = plot(FigureKind::dynamics, {validated("five", 5)});
  EXPECT_FALSE(named(five, "dynamics-accuracy-s3"));
  ASSERT_TRUE(named(five, "dynamics-accuracy"));
  const auto lines = rows(named(five, "dynamics-accuracy")->csv);
  ASSERT_EQ(lines.size(), 2u);  // a head and one validated step
  EXPECT_NEAR(std::stod(lines[1][2]), 0.2, 1e-12);
}

TEST_F(study_figures_of_runs, cases_put_every_group_s_response_beside_the_others) {
  auto runs = write_synthetic_demo(root_, 1);
  auto figures = plot(FigureKind::cases, runs, "", {"synthetic/3"});
  ASSERT_EQ(figures.size(), 1u);
  RunRecord base = read_run(root_ + "/base-seed0");
  EXPECT_NE(figures[0].markdown.find(base.evaluations[0].rows[3].greedy->response), std::string::npos);
  EXPECT_NE(figures[0].markdown.find("<th>DAPO</th><th>UCAS</th>"), std::string::npos);
  EXPECT_EQ(rows(figures[0].csv).size(), 4u);
  EXPECT_EQ(rows(plot(FigureKind::cases, runs)[0].csv).size(), 7u);  // two problems by default
}

TEST_F(study_figures_of_runs, model_text_in_a_case_stays_text) {
  SyntheticRun run;
  run.method = "ucas";
  run.response = "</pre></td><script>alert(1)</script>\n\n# heading\n\xe2\x80\xae";
  auto figures = plot(FigureKind::cases, {write_synthetic_run(root_ + "/r", run)});
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].markdown.find("<script"), std::string::npos);
  EXPECT_EQ(figures[0].markdown.find("\n# heading"), std::string::npos);
  EXPECT_NE(figures[0].markdown.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(figures[0].markdown.find("\xe2\x80\xae"), std::string::npos);
}

TEST_F(study_figures_of_runs, what_is_lacking_is_said) {
  SyntheticRun base;
  base.label = "base";
  auto runs = {write_synthetic_run(root_ + "/base", base)};
  EXPECT_TRUE(plot(FigureKind::dynamics, runs).empty());
  EXPECT_NE(warned_.find("steps.jsonl"), std::string::npos);
  EXPECT_TRUE(plot(FigureKind::bars, runs, "mean@x").empty());
  EXPECT_NE(warned_.find("mean@x"), std::string::npos);
}

TEST_F(study_figures_of_runs, files_are_written_for_what_there_is) {
  auto runs = write_synthetic_demo(root_, 1);
  auto written = write_figures(plot(FigureKind::passk, runs), root_ + "/out");
  EXPECT_EQ(written, (std::vector<std::string>{root_ + "/out/passk.svg", root_ + "/out/passk.csv"}));
  EXPECT_TRUE(read_file(written[0]).starts_with("<svg "));
}

}  // namespace
}  // namespace ucas

#include "evaluate/results/table.h"

#include <gtest/gtest.h>

#include "core/verdict.h"
#include "evaluate/score.h"
#include "verify/registry.h"

namespace ucas {
namespace {

// Two sets; of the second, with subjects a a b, the greedy response to the first problem is wrong.
EvalRecord result_of(const std::string& label, int64_t samples, bool one_set = false) {
  std::vector<Problem> problems(5);
  std::vector<Responses> responses(5);
  for (size_t i = 0; i < 5; ++i) {
    problems[i].source = i < 2 && !one_set ? "one" : "two";
    problems[i].subject = i < 2 ? "" : i < 4 ? "a" : "b";
    problems[i].gold = {"1"};
    Output output;
    output.text = i == 2 ? "\\boxed{2}" : "\\boxed{1}";
    output.ids = {1, 2};
    output.finished = i != 4;
    responses[i].greedy = {output};
    for (int64_t s = 0; s < samples; ++s) responses[i].samples.push_back(output);
  }
  Graders graders;
  graders.standard = make_grader(GraderKind::math);
  EvalConfig config;
  config.samples = samples;
  config.bootstrap_draws = 0;
  EvalRecord result = score(problems, responses, graders, config);
  result.label = label;
  return result;
}

TEST(suite_table, has_a_row_for_each_set_and_both_averages) {
  const EvalRecord results[] = {result_of("m", 0), result_of("other", 0)};
  EXPECT_EQ(suite_table(results),
            "greedy pass@1 %           m                    other\n"
            "one (2)                   100.0 [15.8, 100.0]  100.0 [15.8, 100.0]\n"
            "two (3)                   66.7 [9.4, 99.2]     66.7 [9.4, 99.2]\n"
            "mean of the sets (macro)  83.3                 83.3\n"
            "all problems (micro) (5)  80.0 [28.4, 99.5]    80.0 [28.4, 99.5]\n"
            "\n"
            "m                 tokens  cut at limit %  unparseable %  entropy\n"
            "one (2)           2.0     0.0             0.0            0.000\n"
            "two (3)           2.0     33.3            0.0            0.000\n"
            "all problems (5)  2.0     20.0            0.0            0.000\n"
            "\n"
            "other             tokens  cut at limit %  unparseable %  entropy\n"
            "one (2)           2.0     0.0             0.0            0.000\n"
            "two (3)           2.0     33.3            0.0            0.000\n"
            "all problems (5)  2.0     20.0            0.0            0.000\n");
}

TEST(suite_table, of_one_benchmark_has_the_mean_of_its_subjects) {
  const EvalRecord results[] = {result_of("m", 0, true)};
  const std::string table = suite_table(results);
  EXPECT_TRUE(
      table.starts_with("greedy pass@1 %           m\n"
                        "two (5)                   80.0 [28.4, 99.5]\n"
                        "  mean of its 2 subjects  75.0\n\n"))
      << table;
  EXPECT_EQ(results[0].by_subject.at("two").subjects.at("a").problems, 2);
}

TEST(suite_table, of_samples_has_a_block_for_each_figure_but_pass_at_1) {
  const EvalRecord results[] = {result_of("m", 2)};
  const std::string table = suite_table(results);
  for (const char* title : {"\nmean@2 %  ", "\nmaj@2 %  ", "\npass@2 %  "}) {
    EXPECT_NE(table.find(title), std::string::npos) << title << table;
  }
  EXPECT_EQ(table.find("\npass@1 %"), std::string::npos);
}

}  // namespace
}  // namespace ucas

#include "report/page/template.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "report/alarms.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class benchmarks_of_runs : public ::testing::Test {
 protected:
  // An evaluation of two benchmarks.
  std::string write(const std::string& label, double aime, double math, int64_t max_tokens = 3000) {
    std::string path = path_join(root_, label);
    make_directories(path + "/eval");
    auto f = [](double v) { return str("{\"pass@1\": {\"value\": ", v, ", \"low\": ", v / 2, ", \"high\": 1}}"); };
    write_file(path + "/env.json", str("{\"label\": \"", label, "\"}"));
    write_file(
        path + "/eval/two.json",
        str("{\"label\": \"", label, "\", \"suite\": \"two\", \"data\": [\"d\"], \"problems\": 130, \"greedy\": ",
            f((30 * aime + 100 * math) / 130), ", \"by_source\": {\"math\": {\"problems\": 100, \"greedy\": ", f(math),
            "}, \"aime\": {\"problems\": 30, \"greedy\": ", f(aime),
            "}}, \"macro\": {\"greedy\": ", f((aime + math) / 2),
            "}, \"seed\": 1, \"asked\": {\"ucas\": \"0.2.0\", \"grader_version\": 4, \"keys\": \"problem\", \"dtype\": "
            "\"f32\", \"truncated\": \"grade\", "
            "\"model_files\": [{\"name\": \"model.safetensors\", \"size\": 1, \"sha256\": \"feedbeefcafe\"}], "
            "\"sets\": "
            "[{\"name\": \"math\", \"problems\": 100, \"problems_sha256\": \"01234567\", \"grader\": \"math\", "
            "\"extract\": \"strict\", \"stop_texts\": [], \"max_tokens\": ",
            max_tokens, ", \"template\": \"<b>qwen</b>\", \"template_sha256\": \"aabbccddeeff\"}]}}"));
    return path;
  }
  std::vector<RunGroup> read(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) runs_.push_back(read_run(path));
    return group_runs(runs_);
  }
  const testing::TemporaryDirectory folder_;
  const std::string& root_ = folder_.path();
  std::vector<RunRecord> runs_;
};

TEST_F(benchmarks_of_runs, columns_stand_in_the_suite_s_order_with_macro_and_micro_last) {
  runs_.reserve(4);
  auto groups = read({write("a", 0.1, 0.7)});
  auto tables = benchmark_tables(groups, "d");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].caption, "Greedy accuracy by benchmark, %");
  std::vector<std::string> columns, problems;
  for (const Cell& cell : tables[0].head) columns.push_back(cell.text()), problems.push_back(cell.below);
  EXPECT_EQ(columns, (std::vector<std::string>{"", "math", "aime", "macro", "micro"}));
  EXPECT_EQ(problems, (std::vector<std::string>{"", "100", "30", "", "130"}));
  const auto& cells = tables[0].rows[0].cells;
  EXPECT_DOUBLE_EQ(cells[1].number.value, 0.7);
  EXPECT_DOUBLE_EQ(cells[2].number.value, 0.1);
  EXPECT_DOUBLE_EQ(cells[2].number.low, 0.05);
  EXPECT_DOUBLE_EQ(cells[3].number.value, 0.4);
  EXPECT_DOUBLE_EQ(cells[4].number.value, (3 + 70) / 130.0);
}

TEST_F(benchmarks_of_runs, evaluations_that_differ_are_worth_a_note) {
  runs_.reserve(4);
  auto groups = read({write("a", 0.1, 0.7), write("b", 0.2, 0.6)});
  EXPECT_TRUE(asked_differences(groups, "d").empty());
  runs_.clear();
  groups = read({write("a", 0.1, 0.7), write("b", 0.2, 0.6, 1024)});
  EXPECT_EQ(asked_differences(groups, "d"), std::vector<std::string>{"max_tokens of math: 3000 | 1024"});
  AlarmReport report = find_alarms(groups, results_of(groups));
  ASSERT_EQ(report.alarms.size(), 1u);
  EXPECT_EQ(report.alarms[0].title, "Evaluated differently");
  EXPECT_FALSE(report.alarms[0].serious);
  EXPECT_NE(report.alarms[0].what.find("max_tokens of math"), std::string::npos);
}

TEST_F(benchmarks_of_runs, one_source_needs_no_table) {
  std::string path = write("a", 0.1, 0.7);
  write_file(path + "/eval/two.json", "{\"data\": \"d\", \"problems\": 3, \"by_source\": {\"x\": {\"problems\": 3}}}");
  runs_.reserve(4);
  EXPECT_TRUE(benchmark_tables(read({path}), "d").empty());
}

TEST_F(benchmarks_of_runs, a_broken_part_names_its_place) {
  std::string path = write("a", 0.1, 0.7);
  write_file(path + "/eval/two.json", "{\"by_source\": {\"x\": {\"greedy\": {\"pass@1\": {\"value\": \"much\"}}}}}");
  try {
    read_run(path);
    FAIL() << "a text for a number passed";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("by_source.x"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ucas

#include "report/table_formats.h"

#include <gtest/gtest.h>

#include "base/str.h"
#include "support/synthetic_run.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class table_formats : public ::testing::Test {
 protected:
  testing::TemporaryDirectory directory_;
  std::vector<std::string> runs_ = write_synthetic_demo(directory_.path(), 2);
};

TEST_F(table_formats, markdown_has_a_row_per_group_and_says_what_makes_it) {
  std::string text = results_markdown(runs_, "Three runs", "ucas study three");
  EXPECT_TRUE(text.starts_with("# Three runs\n\nMade by `ucas study three`."));
  EXPECT_EQ(count(text, "\n| base |") + count(text, "\n| DAPO |") + count(text, "\n| UCAS |"), 3);
  EXPECT_NE(text.find(" +- "), std::string::npos);
  EXPECT_NE(text.find("s/step"), std::string::npos);
}

TEST_F(table_formats, many_rows_get_a_count_of_what_could_be_told_apart_instead_of_a_sentence_each) {
  for (const char* name : {"a", "b", "c", "d"}) {
    for (int64_t seed : {0, 1}) {
      SyntheticRun run;
      run.label = name;
      run.method = "grpo";
      run.seed = seed;
      runs_.push_back(write_synthetic_run(str(directory_.path(), "/", name, "-seed", seed), run));
    }
  }
  std::string text = results_markdown(runs_, "Many", "ucas study many");
  EXPECT_NE(text.find("- Against the untrained base: "), std::string::npos) << text;
  EXPECT_NE(text.find(" would be by chance alone"), std::string::npos);
  EXPECT_EQ(text.find("not distinguishable"), std::string::npos);
}

TEST_F(table_formats, csv_has_a_line_per_quantity_with_the_number_of_runs) {
  std::string text = results_csv(runs_);
  EXPECT_TRUE(text.starts_with("data,run,runs,quantity,mean,std,low,high\n"));
  EXPECT_EQ(count(text, ",\"DAPO\",2,greedy,"), 1);
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    EXPECT_EQ(count(line, ","), 7) << line;
  }
}

TEST_F(table_formats, tex_escapes_what_a_label_says) {
  SyntheticRun odd;
  odd.label = "50% & {more}";
  odd.method = "grpo";
  runs_.push_back(write_synthetic_run(directory_.path() + "/odd-seed0", odd));
  std::string text = results_tex(runs_);
  EXPECT_NE(text.find("50\\% \\& \\{more\\} &"), std::string::npos);
  EXPECT_EQ(count(text, "\\begin{tabular}"), count(text, "\\end{tabular}"));
  EXPECT_NE(text.find(" $\\pm$ "), std::string::npos);
}

}  // namespace
}  // namespace ucas

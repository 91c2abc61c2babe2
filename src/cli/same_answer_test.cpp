// "Is B better than A?" has one answer, whichever command is asked.
#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/str.h"
#include "evaluate/results/table.h"
#include "report/summary.h"
#include "results/compare/answers.h"
#include "results/compare/models.h"
#include "study/table.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

constexpr int kProblems = 60;

// A run directory with 20 samples a problem: `shift` moves the answers of single problems.
std::string write_run(const testing::TemporaryDirectory& home, const std::string& method, int seed, int shift) {
  const std::string run = path_join(home.path(), str(method, "-seed", seed));
  make_directories(path_join(run, "eval"));
  write_file(path_join(run, "config.toml"), str("seed = ", seed, "\n[method]\nname = \"", method, "\"\n"));
  write_file(path_join(run, "steps.jsonl"), "{\"training/global_step\": 1, \"train/accuracy\": 0.5}\n");
  std::string rows;
  int64_t greedy = 0, right = 0;
  for (int i = 0; i < kProblems; ++i) {
    const bool solved = (7 * i + 3 * seed) % 10 < 3 + shift;
    const int correct = (3 * i + 5 * seed) % 14 + shift;
    rows += str("{\"id\": \"", i, "\", \"source\": \"s\", \"problem\": \"p\", \"gold\": [\"1\"], ",
                "\"greedy\": {\"verdict\": \"", solved ? "equal" : "unequal",
                "\"}, \"samples\": 20, \"correct\": ", correct, "}\n");
    greedy += solved;
    right += correct;
  }
  write_file(path_join(run, "eval/test.jsonl"), rows);
  const auto share = [](int64_t part, int64_t of) { return static_cast<double>(part) / static_cast<double>(of); };
  write_file(path_join(run, "eval/test.json"),
             str("{\"label\": \"x\", \"data\": \"test\", \"problems\": ", kProblems, ", \"samples\": 20, ",
                 "\"greedy\": {\"pass@1\": {\"value\": ", share(greedy, kProblems), "}}, \"mean@k\": [{\"k\": 16, ",
                 "\"value\": ", share(right, kProblems * 20),
                 "}, {\"k\": 20, \"value\": ", share(right, kProblems * 20), "}]}\n"));
  return run;
}

void expect_same(const Contrast& a, const Contrast& b, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(a.change.value, b.change.value);
  EXPECT_EQ(a.change.low, b.change.low);
  EXPECT_EQ(a.change.high, b.change.high);
  EXPECT_EQ(a.p, b.p);
  EXPECT_EQ(a.p_holm, b.p_holm);
  EXPECT_EQ(a.basis, b.basis);
  EXPECT_EQ(words_of(a, 0.95), words_of(b, 0.95));
}

TEST(same_answer, report_study_and_compare_give_one_interval_one_p_and_the_same_words) {
  for (const int seeds : {1, 3}) {
    testing::TemporaryDirectory home;
    std::vector<std::string> paths;
    for (int seed = 0; seed < seeds; ++seed) paths.push_back(write_run(home, "dapo", seed, 2));
    for (int seed = 0; seed < seeds; ++seed) paths.push_back(write_run(home, "ucas", seed, seed % 2));

    std::vector<RunRecord> runs;
    for (const std::string& path : paths) runs.push_back(read_run(path));
    const std::vector<RunGroup> groups = group_runs(runs);
    const std::vector<Difference> report = results_of(groups)[0].differences;
    const StudyTable study = study_table(paths, {});
    const Comparison compared = compare_models(compared_groups(paths, ""), {});
    const std::string text = summary_table(paths), markdown = table_markdown(study), lines = comparison_text(compared);

    ASSERT_EQ(report.size(), 2u);
    ASSERT_EQ(study.rows[1].against.size(), 2u);
    EXPECT_EQ(study.compare, (std::vector<Quantity>{parse_quantity("greedy"), parse_quantity("mean@16")}));
    for (size_t m : {0, 1}) {
      const Contrast& d = report[m].contrast;
      const std::string what = str(seeds, " seeds, ", report[m].metric);
      ASSERT_TRUE(d.change.bounded()) << what;
      EXPECT_EQ(compared.metrics[m].key, study.compare[m].text());
      expect_same(d, study.rows[1].against[m], what);
      expect_same(d, compared.metrics[m].contrast[1][0], what);
      for (const std::string& printed : {text, markdown, lines}) {
        for (const std::string& part :
             {interval_text(d.change, true), p_text(d.p), p_text(d.p_holm), words_of(d, 0.95)}) {
          EXPECT_NE(printed.find(part), std::string::npos) << what << ": " << part << "\n" << printed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ucas

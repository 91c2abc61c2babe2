#include "evaluate/results/published.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

PublishedTable from_text(const std::string& text) {
  testing::TemporaryDirectory directory;
  const std::string path = path_join(directory.path(), "p.toml");
  write_file(path, text);
  return load_published(path);
}

std::string refusal_of(const std::string& text) {
  try {
    from_text(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

const PublishedRow& row_of(const PublishedTable& table, std::string_view where, std::string_view name,
                           std::string_view size) {
  for (const PublishedRow& row : table.rows) {
    if (row.table == where && row.name == name && row.size == size) return row;
  }
  throw Error(ErrorKind::config, str("no row ", where, " ", name, " ", size));
}

std::vector<std::string> texts(const PublishedLine& line) {
  std::vector<std::string> out;
  for (const Cell& cell : line.cells) out.push_back(cell.text());
  return out;
}

TEST(published, the_tables_of_the_article_are_there_whole) {
  const PublishedTable table = load_published("ucas");
  std::map<std::string, size_t> rows, cells;
  for (const PublishedRow& row : table.rows) {
    ++rows[row.table];
    cells[row.table] += row.figure.size();
  }
  EXPECT_EQ(rows, (std::map<std::string, size_t>{{"Table 1", 18},
                                                 {"Table 2", 10},
                                                 {"Table 3", 6},
                                                 {"Table 5", 3},
                                                 {"Table 6", 3},
                                                 {"Table 7", 3},
                                                 {"Table 8", 3}}));
  EXPECT_EQ(cells, (std::map<std::string, size_t>{{"Table 1", 88},
                                                  {"Table 2", 50},
                                                  {"Table 3", 6},
                                                  {"Table 5", 9},
                                                  {"Table 6", 15},
                                                  {"Table 7", 9},
                                                  {"Table 8", 15}}));
  EXPECT_EQ(row_of(table, "Table 8", "UCAS", "7B").runs, 4);
  EXPECT_EQ(row_of(table, "Table 8", "UCAS", "7B").find("aime24", "greedy")->deviation, 3.5);
  EXPECT_EQ(row_of(table, "Table 6", "DAPO", "7B").find("amc83", "pass@64")->percent, 89.5);
}

TEST(published, averages_that_do_not_follow_from_their_cells_are_found) {
  std::vector<std::string> odd;
  for (const PublishedRow& row : load_published("ucas").rows) {
    for (const std::string& doubt : row.doubts) {
      if (doubt.starts_with("its average")) odd.push_back(str(row.table, " ", row.name, " ", row.size, ": ", doubt));
    }
  }
  EXPECT_EQ(odd,
            (std::vector<std::string>{"Table 1 SEED-GRPO 7B: its average is printed as 54.7, its cells give 54.08",
                                      "Table 1 UCAS 7B: its average is printed as 56.7, its cells give 56.64",
                                      "Table 2 Base Model 7B: its average is printed as 35.2, its cells give 35.10",
                                      "Table 2 DAPO + UCAS 7B: its average is printed as 56.7, its cells give 56.64"}));
}

TEST(published, cells_that_are_no_count_of_the_problems_are_found) {
  const PublishedTable table = load_published("ucas");
  const PublishedRow& ucas = row_of(table, "Table 1", "UCAS", "7B");
  EXPECT_EQ(ucas.find("minerva", "greedy")->doubt, "no count of 272 problems: 102 are 37.50, 103 are 37.87");
  EXPECT_EQ(ucas.find("aime24", "greedy")->doubt, "");
  EXPECT_EQ(row_of(table, "Table 1", "DAPO", "7B").find("aime24", "greedy")->doubt,
            "no count of 30 problems: 9 are 30.00, 10 are 33.33");
  EXPECT_NE(row_of(table, "Table 8", "DAPO", "7B").find("aime24", "greedy")->doubt.find("of 120 answers"),
            std::string::npos);
  // Every AMC figure of the 1.5B half is a count of 83 problems, which decides which AMC set the article has.
  for (const PublishedRow& row : table.rows) {
    const PublishedFigure* amc = row.find("amc83", "greedy");
    EXPECT_TRUE(!amc || row.size != "1.5B" || amc->doubt.empty()) << row.name;
  }
}

TEST(published, a_single_run_is_held_against_the_mean_of_seeds) {
  const PublishedTable table = load_published("ucas");
  EXPECT_EQ(
      row_of(table, "Table 1", "DAPO", "7B").doubts,
      (std::vector<std::string>{"KTAE's released evaluation files (xiaolizh1/KTAE) have the same cells but AIME24, "
                                "36.7 (mean 51.7): a run of that group",
                                "a single run; the mean of 4 seeds (Table 8) is 48.18, 2.3 points lower"}));
  EXPECT_EQ(row_of(table, "Table 1", "DAPO", "1.5B").doubts,
            (std::vector<std::string>{
                "KTAE's released evaluation files (xiaolizh1/KTAE) have the same five cells: a run of that group"}));
  EXPECT_EQ(row_of(table, "Table 8", "DAPO", "7B").doubts, std::vector<std::string>{});
}

TEST(published, lines_stand_beside_their_own_metric_and_none_twice) {
  const PublishedTable table = load_published("ucas");
  const std::vector<std::string> five = {"aime24", "math500", "amc83", "minerva", "olympiadbench", "macro"};
  const std::vector<PublishedLine> greedy = published_lines(table, "greedy", five);
  std::set<std::string> names;
  for (const PublishedLine& line : greedy) names.insert(line.name);
  EXPECT_EQ(names.size(), greedy.size());
  EXPECT_TRUE(names.contains("UCAS 7B (published, Table 1)"));
  EXPECT_FALSE(names.contains("DAPO + UCAS 7B (published, Table 2)")) << "the same figures again";
  EXPECT_TRUE(names.contains("DAPO + Token-Level Certainty 7B (published, Table 2)"));
  EXPECT_TRUE(names.contains("UCAS, alpha 0.4, beta 0.01 (published, Table 3)")) << "one equal cell is no repetition";
  for (const PublishedLine& line : greedy) {
    if (line.name == "UCAS 7B (published, Table 1)") {
      EXPECT_EQ(texts(line), (std::vector<std::string>{"43.3", "85.6", "68.7", "37.6?", "48.0", "56.7?"}));
      ASSERT_EQ(line.doubts.size(), 4u);  // of Minerva, of what else is known, of the average, of the single run
      EXPECT_NE(line.doubts[1].find("Fig. 2"), std::string::npos) << line.doubts[1];
    }
    if (line.name == "UCAS 7B (published, Table 8)") {
      EXPECT_EQ(line.cells[1].text(), "84.6 +- 1.6");
    }
  }
  const std::vector<PublishedLine> pass = published_lines(table, "pass@64", {"amc83", "macro"});
  ASSERT_EQ(pass.size(), 3u);
  EXPECT_EQ(texts(pass[2]), (std::vector<std::string>{"93.58", "-"}));
  EXPECT_EQ(pass[2].cells[0].exact(), "0.9358");
  EXPECT_EQ(pass[2].cells[1].exact(), "");
  EXPECT_TRUE(published_lines(table, "pass@2", five).empty());
}

TEST(published, embedded_figures_are_of_embedded_benchmarks) {
  for (const std::string& name : embedded_names("published/")) {
    for (const PublishedRow& row : load_published(name.substr(10, name.size() - 15)).rows) {
      for (const PublishedFigure& figure : row.figure) {
        EXPECT_TRUE(embedded(str("benchmarks/", figure.benchmark, ".toml")).has_value())
            << name << ": " << figure.benchmark;
      }
    }
  }
}

TEST(published, rows_and_figures_keep_the_order_of_the_file) {
  const PublishedTable table = from_text(
      "source = \"x\"\n[row.zeta]\nname = \"Z\"\nsize = \"7B\"\nminerva = 40\namc83 = 50.5\n[row.alpha]\namc83 = 1\n");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].name, "Z");
  EXPECT_EQ(table.rows[0].size, "7B");
  ASSERT_EQ(table.rows[0].figure.size(), 2u);
  EXPECT_EQ(table.rows[0].figure[0].benchmark, "minerva");
  EXPECT_EQ(table.rows[0].figure[1].percent, 50.5);
  EXPECT_EQ(table.rows[1].name, "alpha");
}

TEST(published, what_is_no_percentage_or_has_no_source_is_refused_with_its_place) {
  EXPECT_NE(refusal_of("source = \"x\"\n[row.a]\namc83 = 168.7\n").find("p.toml:3: row.a.amc83: 168.7, expected a"),
            std::string::npos);
  EXPECT_NE(refusal_of("source = \"x\"\n[row.a]\namc83 = \"68.7\"\n").find("expected a percentage"), std::string::npos);
  EXPECT_NE(refusal_of("source = \"x\"\n[rows.a]\namc83 = 68.7\n").find("unknown key"), std::string::npos);
  EXPECT_NE(refusal_of("[row.a]\namc83 = 68.7\n").find("source is missing"), std::string::npos);
  EXPECT_NE(refusal_of("source = \"x\"\n").find("no table [row.KEY]"), std::string::npos);
  EXPECT_THROW(load_published("ukas"), Error);
}

}  // namespace
}  // namespace ucas

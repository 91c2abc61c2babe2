#include "evaluate/results/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "evaluate/benchmark.h"
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

// Half a unit of the last digit that was printed.
double slack_of(double percent) {
  const std::string digits = published_digits(percent);
  return 0.5 * std::pow(10.0, -static_cast<double>(digits.size() - digits.find('.') - 1)) + 1e-9;
}

// A share of greedy answers is a whole number of the set's problems, over several runs of all of theirs together.
std::string count_doubt(const PublishedFigure& figure, int64_t runs) {
  const auto n = static_cast<double>(load_suite(figure.benchmark).benchmarks[0].problems * runs);
  if (n == 0 || figure.metric != "greedy") return "";
  const double below = std::floor(figure.percent * n / 100), low = 100 * below / n, high = 100 * (below + 1) / n;
  if (std::min(figure.percent - low, high - figure.percent) <= slack_of(figure.percent)) return "";
  return str("no count of ", n, runs > 1 ? " answers: " : " problems: ", below, " are ", fixed(low, 2), ", ", below + 1,
             " are ", fixed(high, 2));
}

std::string average_doubt(const PublishedRow& row) {
  if (std::isnan(row.average) || row.figure.empty()) return "";
  double sum = 0;
  for (const PublishedFigure& figure : row.figure) sum += figure.percent;
  const double mean = sum / static_cast<double>(row.figure.size());
  if (std::fabs(mean - row.average) <= slack_of(row.average)) return "";
  return str("its average is printed as ", published_digits(row.average), ", its cells give ", fixed(mean, 2));
}

// A single run next to the mean of several of the same method and size.
std::string seeds_doubt(const PublishedRow& row, const PublishedTable& table) {
  for (const PublishedRow& other : table.rows) {
    if (row.runs > 1 || other.runs < 2 || other.name != row.name || other.size != row.size) continue;
    const double less = row.average - other.average;
    if (std::isnan(less) || std::fabs(less) < 0.5) continue;
    return str("a single run; the mean of ", other.runs, " seeds (", other.table, ") is ",
               published_digits(other.average), ", ", fixed(std::fabs(less), 1), " points ",
               less > 0 ? "lower" : "higher");
  }
  return "";
}

TEST(published, every_figure_that_its_own_arithmetic_makes_doubtful_says_so) {
  const PublishedTable table = load_published("ucas");
  int doubts = 0;
  for (const PublishedRow& row : table.rows) {
    for (const PublishedFigure& figure : row.figure) {
      EXPECT_EQ(figure.doubt, count_doubt(figure, row.runs)) << row.table << " " << row.name << " " << figure.benchmark;
      doubts += !figure.doubt.empty();
    }
    EXPECT_EQ(row.average_doubted, !average_doubt(row).empty()) << row.table << " " << row.name;
    for (const std::string& doubt : {average_doubt(row), seeds_doubt(row, table)}) {
      const bool said = doubt.empty() || std::ranges::find(row.doubts, doubt) != row.doubts.end();
      EXPECT_TRUE(said) << row.table << " " << row.name << ": " << doubt;
      doubts += !doubt.empty();
    }
  }
  EXPECT_EQ(doubts, 36);
  // Every AMC figure of the 1.5B half is a count of 83 problems, which decides which AMC set the article has.
  for (const PublishedRow& row : table.rows) {
    const PublishedFigure* amc = row.find("amc83", "greedy");
    EXPECT_TRUE(!amc || row.size != "1.5B" || amc->doubt.empty()) << row.name;
  }
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

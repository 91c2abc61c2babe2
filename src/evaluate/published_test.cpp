#include "evaluate/published.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
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

TEST(published, every_embedded_amc_figure_is_a_whole_number_of_83_problems) {
  const PublishedTable table = load_published("ucas");
  int64_t seen = 0;
  for (const PublishedRow& row : table.rows) {
    for (const auto& [benchmark, percent] : row.figure) {
      if (benchmark != "amc83") continue;
      const double right = std::round(percent * 83 / 100);
      EXPECT_NEAR(100 * right / 83, percent, 0.05) << row.name << " " << row.size;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 3);
}

TEST(published, embedded_figures_are_of_embedded_benchmarks) {
  for (const std::string& name : embedded_names("published/")) {
    for (const PublishedRow& row : load_published(name.substr(10, name.size() - 15)).rows) {
      for (const auto& [benchmark, percent] : row.figure) {
        EXPECT_TRUE(embedded(str("benchmarks/", benchmark, ".toml"))) << name << ": " << benchmark;
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
  EXPECT_EQ(table.rows[0].figure, (std::vector<std::pair<std::string, double>>{{"minerva", 40}, {"amc83", 50.5}}));
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

#include "report/methods_figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ucas {
namespace {

MethodsTable two_rows() {
  MethodsTable table;
  table.steps = 1;
  table.groups = 2;
  table.responses = 8;
  table.rare = 0.25;
  table.rows = {{"dapo", "paper", 1, 1, 0.125, 40, 0, 0, 0, 4, 0, 5, 0},
                {"ucas", "placebo matched_dapo", std::numeric_limits<double>::quiet_NaN(), 0.75, -0.25, 40, 10, 3, 2, 4,
                 1, 5, 2}};
  table.left_out = {"ppo: the values of a critic"};
  return table;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(methods_figure, has_a_mark_a_row_and_quantity_and_none_where_it_is_unknown) {
  const StudyFigure figure = methods_figure(two_rows());
  EXPECT_EQ(count_of(figure.svg, "<circle"), 9u);  // two rows of five; the placebo's correlation is unknown
  EXPECT_NE(figure.svg.find("ucas, placebo matched_dapo: -0.25"), std::string::npos) << figure.svg;
  EXPECT_EQ(figure.title, "2 ways to weigh a token, same prompts, same bits");
  EXPECT_NE(figure.note.find("at most 25 % of the prompt's are (4 of 9)"), std::string::npos) << figure.note;
  EXPECT_NE(figure.csv.find("ucas,placebo matched_dapo,,0.75,-0.25,40,10,3,2,4,1,5,2\n"), std::string::npos)
      << figure.csv;
}

TEST(methods_figure, the_table_has_shares_of_tokens_and_of_right_responses) {
  const Table rows = methods_rows(two_rows());
  std::vector<std::string> cells;
  for (const Cell& cell : rows.rows[1].cells) cells.push_back(cell.text());
  EXPECT_EQ(cells, (std::vector<std::string>{"ucas", "placebo matched_dapo", "-", "0.750 x", "-0.2500", "25.0 %",
                                             "7.5 %", "25.0 %", "40.0 %"}));
}

TEST(methods_figure, the_page_links_its_figure_and_says_what_made_it) {
  const std::string page = methods_page(two_rows(), "one-step", "ucas advantages RUN --table");
  for (const char* part : {"# 2 ways to weigh a token", "Made by `ucas advantages RUN --table`.", "](one-step.svg)",
                           "| dapo | paper | 1.000 |", "- ppo: the values of a critic"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  }
}

}  // namespace
}  // namespace ucas

#include "results/table.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

Table table() {
  Table t;
  t.head = {"", "greedy %", "p"};
  t.rows = {{"a|b", "84.4 +- 1.0", "-"}, {"c, d", "9.0", "< 0.001"}};
  return t;
}

TEST(table, text_aligns_names_to_the_left_and_numbers_to_the_right) {
  EXPECT_EQ(table().text("  "),
            "           greedy %        p\n"
            "  a|b   84.4 +- 1.0        -\n"
            "  c, d          9.0  < 0.001\n");
}

TEST(table, columns_that_do_not_fit_stand_below_beside_the_names_again) {
  Table t = table();
  t.head.push_back("entropy");
  t.rows[0].cells.push_back("0.05");
  t.rows[1].cells.push_back("0.1");
  EXPECT_EQ(t.text("  ", 30),
            "           greedy %        p\n"
            "  a|b   84.4 +- 1.0        -\n"
            "  c, d          9.0  < 0.001\n"
            "\n"
            "        entropy\n"
            "  a|b      0.05\n"
            "  c, d      0.1\n");
  EXPECT_EQ(t.text("  ", 37), t.text("  "));  // all of them fit
  EXPECT_EQ(t.text("  ", 36), t.text("  ", 30));
  EXPECT_EQ(t.text("", 1).substr(0, 18), "         greedy %\n");  // one column a block at least
  EXPECT_EQ(Table{}.text("", 10), "");
}

TEST(table, a_number_is_shown_rounded_to_people_and_whole_to_programs) {
  Table t;
  t.head = {"", "mean", "interval", "p", "n", "unknown"};
  t.add({"a", Cell::mean({0.8443, 0.8, 0.9}, 0.01, true), Cell::figure({0.8443, 0.8, 0.9}), Cell::p(0.00012),
         Cell::count(1234), Cell::unknown()});
  EXPECT_EQ(t.text().substr(t.text().find("\na ") + 1), "a  84.4 +- 1.0  84.4 [80.0, 90.0]  < 0.001  1,234        -\n");
  EXPECT_EQ(t.csv(), ",mean,interval,p,n,unknown\na,0.8443,0.8443,0.00012,1234,\n");
}

TEST(table, a_caption_stands_above_and_notes_below) {
  Table t = table();
  t.caption = "100 % of it";
  t.notes = {"first", "second"};
  EXPECT_TRUE(t.text("  ").starts_with("100 % of it\n\n           greedy %"));
  EXPECT_TRUE(t.text("  ").ends_with("< 0.001\n\n  first\n  second\n"));
  EXPECT_TRUE(t.markdown().starts_with("100 % of it\n\n| "));
  EXPECT_TRUE(t.markdown().ends_with(" |\n\nfirst\nsecond\n"));
  EXPECT_EQ(t.csv(), table().csv());
}

TEST(cell, words_stand_before_and_after_a_number) {
  Cell cell = Cell::mean({12, kUnknown, kUnknown}, kUnknown, false);
  cell.before = ">= ";
  cell.after = " (3 of 4)";
  EXPECT_EQ(cell.text(), ">= 12.0 (3 of 4)");
  EXPECT_EQ(cell.exact(), "12");
  EXPECT_EQ(Cell::mean({0.5, kUnknown, kUnknown}, kUnknown, true).text(), "50.0");
  EXPECT_EQ(Cell::decimal(0.25, 2, true).text(), "+0.25");
  EXPECT_EQ(Cell::decimal(-0.25, 2, true).text(), "-0.25");
  EXPECT_EQ(Cell::change(-0.017, true).text(), "-1.7");
}

TEST(table, markdown_and_csv_keep_each_cell_one_cell) {
  EXPECT_EQ(table().markdown(),
            "|  | greedy % | p |\n| --- | --- | --- |\n| a\\|b | 84.4 +- 1.0 | - |\n| c, d | 9.0 | \\< 0.001 |\n");
  EXPECT_EQ(table().csv(), ",greedy %,p\na|b,84.4 +- 1.0,-\n\"c, d\",9.0,< 0.001\n");
}

TEST(table, a_control_byte_of_a_label_is_shown_in_every_format) {
  Table t;
  t.head = {"x"};
  t.rows = {{"a\x1b[31m\nb"}};
  for (const std::string& text : {t.text(), t.markdown(), t.csv()}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find("\nb"), std::string::npos) << text;
  }
}

TEST(table_text, markdown_shows_what_it_would_act_on) {
  EXPECT_EQ(markdown_text("a|b *c* [d](e) <f>"), "a\\|b \\*c\\* \\[d\\](e) \\<f>");
}

TEST(table_text, csv_keeps_commas_and_quotes_in_one_field) {
  EXPECT_EQ(csv_text("a, \"b\""), "\"a, \"\"b\"\"\"");
  EXPECT_EQ(csv_text("two\nlines").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ucas

#include "base/table_text.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

TEST(table_text, markdown_shows_what_it_would_act_on) {
  EXPECT_EQ(markdown_text("a|b *c* [d](e) <f>"), "a\\|b \\*c\\* \\[d\\](e) \\<f>");
}

TEST(table_text, tex_holds_no_command_of_the_text) {
  EXPECT_EQ(tex_text("50 % & \\input{x}_1"), "50 \\% \\& \\textbackslash{}input\\{x\\}\\_1");
  EXPECT_EQ(tex_text("a~b^2"), "a\\textasciitilde{}b\\textasciicircum{}2");
}

TEST(table_text, csv_keeps_commas_and_quotes_in_one_field) {
  EXPECT_EQ(csv_text("a, \"b\""), "\"a, \"\"b\"\"\"");
  EXPECT_EQ(csv_text("two\nlines").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ucas

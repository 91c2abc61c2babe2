#include "verify/math/parser.h"

#include <gtest/gtest.h>

#include <string>

namespace ucas::math {
namespace {

std::string read(std::string_view text) {
  ParseResult result = parse_math(text);
  return result.status == ParseStatus::ok ? to_string(result.tree) : "! " + result.reason;
}

TEST(math_parser, fractions_come_in_every_spelling) {
  for (const char* text : {"\\frac12", "\\frac{1}{2}", "\\dfrac 12", "\\tfrac{1}2", "\\cfrac1{2}", "1/2",
                           "{1 \\over 2}", "\\left(\\frac{1}{2}\\right)", "\xc2\xbd", "\\\\frac{1}{2}",
                           "\x0c"
                           "rac{1}{2}",
                           "$\\frac{1}{2}$."}) {
    EXPECT_EQ(read(text), "(/ 1 2)") << text;
  }
}

TEST(math_parser, a_whole_number_before_a_fraction_is_a_mixed_number) {
  EXPECT_EQ(read("2\\frac{1}{3}"), "(+ 2 (/ 1 3))");
  EXPECT_EQ(read("2 1/3"), "(+ 2 (/ 1 3))");
  EXPECT_EQ(read("2\\frac{\\pi}{3}"), "(* 2 (/ pi 3))");
}

}  // namespace
}  // namespace ucas::math

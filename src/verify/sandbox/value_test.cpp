#include "verify/sandbox/sandbox.h"

#include <gtest/gtest.h>

namespace ucas::code {
namespace {

bool same(const char* a, const char* b) {
  const auto x = parse_value(a), y = parse_value(b);
  EXPECT_TRUE(x.has_value()) << a;
  EXPECT_TRUE(y.has_value()) << b;
  return x && y && equal(*x, *y);
}

TEST(code_value, compares_as_python_does) {
  EXPECT_TRUE(same("1", " 01_0 ") == false);
  EXPECT_TRUE(same("10", "1_0"));
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("True", "1"));
  EXPECT_TRUE(same("-0", "0"));
  EXPECT_TRUE(same("1e3", "1000"));
  EXPECT_TRUE(same("123456789012345678901234567890", "123456789012345678901234567890"));
  EXPECT_FALSE(same("123456789012345678901234567890", "123456789012345678901234567891"));
  EXPECT_FALSE(same("[1, 2]", "(1, 2)"));
  EXPECT_TRUE(same("(1)", "1"));
  EXPECT_FALSE(same("(1,)", "1"));
  EXPECT_TRUE(same("{1, 2, 2}", "{2, 1}"));
  EXPECT_TRUE(same("{'a': 1, 'b': [2]}", "{'b': [2.0], \"a\": True}"));
  EXPECT_FALSE(same("{'a': 1}", "{'a': 2}"));
  EXPECT_TRUE(same("{'a': 1, 'a': 2}", "{'a': 2}"));
  EXPECT_TRUE(same("'a\\x41\\u0041\\n'", "\"aAA\\n\""));
  EXPECT_FALSE(same("b'a'", "'a'"));
  EXPECT_TRUE(same("inf", "1e400"));
  EXPECT_FALSE(same("nan", "nan"));
  EXPECT_FALSE(same("None", "0"));
  EXPECT_FALSE(same("set()", "{}"));
}

TEST(code_value, what_is_no_literal_is_none) {
  for (const char* text : {"", "x", "1 2", "f(1)", "[1", "[1 2]", "1 + 1", "{1: 2, 3}", "'a", "[1],", "--", "1a",
                           "'\\xg0'", "__import__('os')", "None.x", "'a' b'b'"}) {
    EXPECT_FALSE(parse_value(text).has_value()) << text;
  }
}

TEST(code_value, nesting_and_digits_have_a_limit) {
  EXPECT_TRUE(parse_value(std::string(90, '[') + std::string(90, ']')));
  EXPECT_FALSE(parse_value(std::string(100000, '[')));
  EXPECT_TRUE(parse_value(std::string(50000, '7')));
  EXPECT_FALSE(parse_value(std::string(50001, '7')));
}

TEST(code_value, decimals_are_equal_by_value) {
  EXPECT_TRUE(same_decimal("1.50", "15e-1"));
  EXPECT_TRUE(same_decimal("-0.0", "0"));
  EXPECT_TRUE(same_decimal(".5", "0.5"));
  EXPECT_FALSE(same_decimal("0.1", "0.10000000000000001"));
  EXPECT_FALSE(same_decimal("a", "a"));
  EXPECT_FALSE(same_decimal("1e999999999", "1e999999999"));
  EXPECT_FALSE(same_decimal("", ""));
}

TEST(code_value, json_becomes_a_literal) {
  EXPECT_EQ(literal_of_json("[1, true, null, \"a\\n\", {\"b\": 1.5}]"), "[1,True,None,\"a\\n\",{\"b\":1.5,},]");
  EXPECT_EQ(literal_of_json("nope"), std::nullopt);
}

}  // namespace
}  // namespace ucas::code

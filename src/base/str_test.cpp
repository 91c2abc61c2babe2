#include "base/str.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <charconv>
#include <cstring>
#include <limits>

namespace ucas {

TEST(str, many_has_a_plural) {
  EXPECT_EQ(many(1, "problem"), "1 problem");
  EXPECT_EQ(many(1200, "problem"), "1,200 problems");
}

TEST(str, numbers_print_shortest_exact) {
  EXPECT_EQ(str(0.1, " ", 1e-6, " ", 1e300, " ", 0.1f, " ", int64_t{-3}, " ", true, ' ', "x"),
            "0.1 1e-06 1e+300 0.1 -3 true x");
}

RC_GTEST_PROP(str, every_double_reads_back_as_itself, (double value)) {
  std::string text = str(value);
  double back = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), back);
  RC_ASSERT(error == std::errc() && end == text.data() + text.size());
  RC_ASSERT(std::memcmp(&back, &value, sizeof value) == 0);
}

TEST(str, people_read_grouped_numbers_times_and_sizes) {
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(human_seconds(3.21), "3.2s");
  EXPECT_EQ(human_seconds(59.4), "59s");
  EXPECT_EQ(human_seconds(75), "1m15s");
  EXPECT_EQ(human_seconds(3660), "1h01m");
  EXPECT_EQ(human_seconds(-1), "?");
  EXPECT_EQ(human_bytes(1.5e9), "1.40 GiB");
  EXPECT_EQ(human_bytes(1000), "1000 B");
  EXPECT_EQ(percent(0.125), "12.5 %");
  EXPECT_EQ(fixed(3.14159265, 2), "3.14");
}

TEST(str, printable_hides_control_bytes_and_broken_utf8_and_cuts) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\t"), "a\\x1b[2Jb\\n\\t");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2Jb\xc2\xa9"),
            "a\\xc2\\x9b2Jb\xc2\xa9");
  EXPECT_EQ(printable("\xff\xc3\xa4"), "\\xff\xc3\xa4");
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b\xe2\x81\xa9"
                      "c\xe2\x80\x94"),
            "a\\u202eb\\u2069c\xe2\x80\x94");
  EXPECT_EQ(printable(std::string(200, 'x'), 10), "xxxxxxxxxx...");
}

RC_GTEST_PROP(str, printable_text_is_valid_utf8_without_control_bytes, (const std::string& any)) {
  std::string shown = printable(any, 50);
  RC_ASSERT(valid_utf8(shown));
  for (char c : shown) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  RC_ASSERT(shown.size() <= 50 + 8);
}

TEST(str, utf8_refuses_overlong_surrogate_and_too_large) {
  EXPECT_TRUE(valid_utf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const char* bad : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
                          "\xe2\x82", "\x80", "\xff"}) {
    EXPECT_FALSE(valid_utf8(bad)) << printable(bad);
  }
}

TEST(str, nearest_finds_typos_and_is_silent_when_nothing_is_near) {
  std::vector<std::string> keys = {"method.alpha", "method.alpha_neg", "method.beta", "steps"};
  EXPECT_EQ(nearest("method.alhpa", keys), "method.alpha");
  EXPECT_EQ(nearest("step", keys), "steps");
  EXPECT_EQ(nearest("zzzzzz", keys), "");
  EXPECT_EQ(nearest(std::string(1 << 22, 'a'), keys), "") << "a hostile key must not cost a second";
}

TEST(str, split_and_join_are_inverse) {
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(join(split("a,,b,", ','), ","), "a,,b,");
  EXPECT_EQ(trim(" \t x y \r\n"), "x y");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(pad_left("ab", 4) + "|" + pad_right("abc", 2) + "|", "  ab|abc|");
}

}  // namespace ucas

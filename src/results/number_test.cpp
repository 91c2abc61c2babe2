#include "results/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ucas {
namespace {

TEST(number, has_the_digits_of_its_size_and_a_zero_has_no_sign) {
  EXPECT_EQ(number_text(0.8443, true), "84.4");
  EXPECT_EQ(number_text(-0.0004, true), "0.0");
  EXPECT_EQ(number_text(18.14, false), "18.1");
  EXPECT_EQ(number_text(-0.0001, false), "0.000");
  EXPECT_EQ(number_text(1234.5, false), "1234");
  EXPECT_EQ(change_text(-0.017, true), "-1.7");
  EXPECT_EQ(change_text(0.0004, true), "+0.04");
  EXPECT_EQ(change_text(-1e-9, true), "0");
}

TEST(number, that_is_unknown_is_a_dash_or_nothing) {
  EXPECT_EQ(number_text(kUnknown, true), "-");
  EXPECT_EQ(bounds_text({0.5, kUnknown, kUnknown}, true), "");
  EXPECT_EQ(interval_text({0.5, kUnknown, kUnknown}, true), "");
  EXPECT_EQ(p_text(kUnknown), "-");
  EXPECT_EQ(signed_text(kUnknown, 2), "-");
  EXPECT_EQ(share_text(0, 0), "-");
  EXPECT_EQ(json_of(Figure{0.5, kUnknown, 1}).dump(), R"({"value":0.5,"low":null,"high":1.0})");
}

TEST(number, of_any_size_has_three_digits_or_an_exponent) {
  EXPECT_EQ(measure_text(0), "0");
  EXPECT_EQ(measure_text(0.0123), "0.012");
  EXPECT_EQ(measure_text(12.345), "12.35");
  EXPECT_EQ(measure_text(-123.45), "-123.5");
  EXPECT_EQ(measure_text(123456), "1.2e+05");
  EXPECT_EQ(measure_text(kUnknown), "-");
}

}  // namespace
}  // namespace ucas

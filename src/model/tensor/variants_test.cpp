#include "model/tensor/variants.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace ucas {
namespace {

TEST(variants, are_read_from_one_line) {
  const Variants usual = parse_variants("");
  EXPECT_EQ(usual.head, HeadLogits::again);
  EXPECT_FALSE(usual.joined_gradients || usual.bf16_reductions);
  EXPECT_TRUE(usual.early_launch);
  const Variants other = parse_variants("head=whole,wgrad=joined,reductions=bf16,launch=plain");
  EXPECT_EQ(other.head, HeadLogits::whole);
  EXPECT_TRUE(other.joined_gradients && other.bf16_reductions);
  EXPECT_FALSE(other.early_launch);
  EXPECT_EQ(parse_variants("head=kept,head=again").head, HeadLogits::again) << "the last one counts";
}

std::string refusal_of(const char* text) {
  try {
    parse_variants(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kBadInput);
    return error.what();
  }
  return "";
}

TEST(variants, a_name_or_value_that_is_none_is_refused_with_those_that_are) {
  EXPECT_NE(refusal_of("head=kept,page=64").find("UCAS_TRY: \"page=64\": expected some of head=again|kept|whole, "),
            std::string::npos);
  EXPECT_NE(refusal_of("head=twice").find("UCAS_TRY: \"head=twice\": expected some of "), std::string::npos);
  for (const char* text : {"head", "head=", "=", ",", "head=kept,,wgrad=joined", "HEAD=kept", "head =kept"})
    EXPECT_NE(refusal_of(text), "") << text;
  EXPECT_EQ(refusal_of("head=kept"), "");
}

}  // namespace
}  // namespace ucas

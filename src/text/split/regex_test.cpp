#include "text/split/splitter.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/unicode/unicode.h"

namespace ucas {
namespace {

std::vector<std::string> matches(const std::string& expression, std::string_view text) {
  std::vector<std::string> out;
  for (const Regex::Match& match : Regex(expression, "here").find_all(text)) {
    out.emplace_back(text.substr(match.begin, match.end - match.begin));
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(regex, an_empty_match_right_after_a_match_is_none) {
  EXPECT_EQ(matches("x*", "axxb"), (Texts{"", "xx", ""}));
  EXPECT_EQ(matches("x*", ""), Texts{""});
}

// The dialect is Oniguruma's: after a count, a plus is a second quantifier and not a possessive one.
TEST(regex, it_reads_what_the_reference_reads) {
  EXPECT_EQ(matches(R"(\p{N}{1,3}+)", "1234567"), Texts{"1234567"});
  EXPECT_EQ(matches(R"(\p{N}{1,3})", "1234567"), (Texts{"123", "456", "7"}));
  EXPECT_EQ(matches(R"((?i:'s|'t)|\s+(?!\S))", "'S  x"), (Texts{"'S", " "}));
  EXPECT_EQ(matches(R"((?<=a)b)", "abb"), Texts{"b"});
  EXPECT_EQ(matches(R"([[a-z]&&[^b]]+)", "abc"), (Texts{"a", "c"}));
}

// Letters of Unicode 15 and 16, which an older Oniguruma does not know.
TEST(regex, categories_are_those_of_unicode_16_whatever_library_is_installed) {
  for (uint32_t code : {0x323AFu, 0x2EBF0u, 0x10D4Au, 0x1C8Au}) {
    std::string text;
    append_utf8(text, code);
    for (const char* letter :
         {R"(\p{L})", R"(\p{ L })", R"(\p{Letter})", R"([\p{L}])", R"([^\P{L}])", R"([^\p{^L}])", R"(\P{^l})"}) {
      EXPECT_EQ(matches(letter, text), Texts{text}) << letter << " " << code;
    }
    EXPECT_EQ(matches(R"(\P{L}|[^\p{L}]|\p{^L}|\p{N}|\p{P}|\p{S}|\p{M})", text), Texts{}) << code;
  }
  EXPECT_EQ(matches(R"(\d+)", "12\U00010D40\U0001CCF0"), Texts{"12\U00010D40\U0001CCF0"});
  EXPECT_EQ(matches(R"(\\p{L})", "\\ppp{L}").size(), 0u) << "an escaped backslash begins no property";
}

// Words, digits and white space of the expressions that most tokenizers have.
TEST(regex, expressions_of_known_tokenizers_cut_as_their_alternatives_say) {
  const std::string qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  std::string llama3 = qwen2;
  llama3.replace(llama3.find("|\\p{N}|"), 7, "|\\p{N}{1,3}|");
  EXPECT_EQ(matches(qwen2, "It's 2024!"), (Texts{"It", "'s", " ", "2", "0", "2", "4", "!"}));
  EXPECT_EQ(matches(qwen2, "  two  spaces "), (Texts{" ", " two", " ", " spaces", " "}));
  EXPECT_EQ(matches(qwen2, " \r\n \t\n  z"), (Texts{" \r\n \t\n", " ", " z"}));
  EXPECT_EQ(matches(qwen2, "'\xC5\xBFx"), (Texts{"'\xC5\xBF", "x"})) << "the long s folds to s";
  EXPECT_EQ(matches(llama3, "x1234567 89"), (Texts{"x", "123", "456", "7", " ", "89"}));
}

TEST(regex, what_is_no_expression_is_refused) {
  for (const char* wrong : {"(a", "[b", "*a", R"(\p{Nothing})", "\xFF"}) {
    try {
      Regex regex(wrong, "some place");
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "tokenizer");
      EXPECT_TRUE(std::string(error.what()).starts_with("some place: the expression \"")) << error.what();
    }
  }
}

}  // namespace
}  // namespace ucas

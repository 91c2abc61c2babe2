#include "text/split/regex.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "text/split/splitter.h"
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

// The matchers written by hand against the library, on the expressions that they stand for.
TEST(regex, fast_matchers_cut_as_their_expressions_do) {
  const std::string qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  std::string llama3 = qwen2;
  llama3.replace(llama3.find("|\\p{N}|"), 7, "|\\p{N}{1,3}|");
  const std::string alphabet = "aZ1 '!.\r\n\tstREveLlmd";
  for (const std::string& expression : {qwen2, llama3, std::string(gpt2_pattern().expression)}) {
    const SplitPattern* pattern = known_pattern(expression);
    ASSERT_NE(pattern, nullptr) << expression;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      Rng rng(seed, 6);
      std::string text;
      for (int64_t n = 1 + rng.below(40); n > 0; --n) {
        const auto code = static_cast<uint32_t>(rng.below(0xD800));
        rng.below(3) > 0 ? text += alphabet[rng.below(alphabet.size())] : (append_utf8(text, code), text);
      }
      Texts fast;
      for (size_t at = 0, end = 0; at < text.size(); at = end) {
        end = pattern->piece_end(text, at);
        fast.push_back(text.substr(at, end - at));
      }
      ASSERT_EQ(matches(expression, text), fast) << pattern->name << " " << seed;
    }
  }
}

}  // namespace
}  // namespace ucas

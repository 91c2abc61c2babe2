#include "text/split/splitter.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "text/unicode/unicode.h"

namespace ucas {
namespace {

const char* const kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> pieces(const SplitPattern& pattern, std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = pattern.piece_end(text, at);
    EXPECT_GT(end, at);
    EXPECT_LE(end, text.size());
    if (end <= at || end > text.size()) break;
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

using Pieces = std::vector<std::string>;

TEST(pretokenizer, patterns_are_known_by_every_letter) {
  ASSERT_NE(known_pattern(kQwen2), nullptr);
  EXPECT_STREQ(known_pattern(kQwen2)->name, "Qwen2");
  EXPECT_EQ(known_pattern(gpt2_pattern().expression), &gpt2_pattern());
  EXPECT_EQ(known_pattern(std::string(kQwen2) + " "), nullptr);
  EXPECT_EQ(known_pattern(""), nullptr);
  EXPECT_EQ(known_pattern("(a+)+b"), nullptr);
}

TEST(pretokenizer, qwen2_cuts_words_digits_and_white_space) {
  const SplitPattern& qwen2 = *known_pattern(kQwen2);
  EXPECT_EQ(pieces(qwen2, "It's 2024!"), (Pieces{"It", "'s", " ", "2", "0", "2", "4", "!"}));
  EXPECT_EQ(pieces(qwen2, "  two  spaces "), (Pieces{" ", " two", " ", " spaces", " "}));
  EXPECT_EQ(pieces(qwen2, "x = \\frac{1}{2}\n\n y"),
            (Pieces{"x", " =", " \\", "frac", "{", "1", "}{", "2", "}\n\n", " y"}));
  EXPECT_EQ(pieces(qwen2, " \r\n \t\n  z"), (Pieces{" \r\n \t\n", " ", " z"}));
  EXPECT_EQ(pieces(qwen2, "\t x"), (Pieces{"\t", " x"}));
  EXPECT_EQ(pieces(qwen2, "\tx #y"), (Pieces{"\tx", " #", "y"}));
  EXPECT_EQ(pieces(qwen2, "(a)"), (Pieces{"(a", ")"}));
}

TEST(pretokenizer, llama3_cuts_digits_in_threes) {
  std::string expression = kQwen2;
  expression.replace(expression.find("|\\p{N}|"), 7, "|\\p{N}{1,3}|");
  ASSERT_NE(known_pattern(expression), nullptr);
  const SplitPattern& llama3 = *known_pattern(expression);
  EXPECT_STREQ(llama3.name, "Llama 3");
  EXPECT_EQ(pieces(llama3, "x1234567 89"), (Pieces{"x", "123", "456", "7", " ", "89"}));
  EXPECT_EQ(pieces(llama3, "12\u0663\u06634"), (Pieces{"12\u0663", "\u06634"}));
}

TEST(pretokenizer, gpt2_keeps_numbers_together) {
  EXPECT_EQ(pieces(gpt2_pattern(), "It's 2024!\n\n x"), (Pieces{"It", "'s", " 2024", "!", "\n\n", " x"}));
  EXPECT_EQ(pieces(gpt2_pattern(), "(a) \tb"), (Pieces{"(", "a", ")", " ", "\t", "b"}));
}

TEST(pretokenizer, contractions_fold_case_only_in_qwen2) {
  const SplitPattern& qwen2 = *known_pattern(kQwen2);
  EXPECT_EQ(pieces(qwen2, "'LLx"), (Pieces{"'LL", "x"}));
  EXPECT_EQ(pieces(gpt2_pattern(), "'LLx"), (Pieces{"'", "LLx"}));
  EXPECT_EQ(pieces(qwen2, "'\xC5\xBFx"), (Pieces{"'\xC5\xBF", "x"}));  // long s
  EXPECT_EQ(pieces(qwen2, "'lx"), (Pieces{"'lx"}));
  EXPECT_EQ(pieces(qwen2, "'"), (Pieces{"'"}));
}

TEST(pretokenizer, every_byte_is_in_exactly_one_piece_also_of_broken_text) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, 2);
    const std::string alphabet = "a1 \n\r\t'.s\x80\xC3\xA9\xE2\x80\xA8\xF0\x9F\x98\x80\xFF";
    std::string text;
    for (int64_t n = rng.below(30); n > 0; --n) text += alphabet[rng.below(alphabet.size())];
    for (const SplitPattern* pattern : {known_pattern(kQwen2), &gpt2_pattern()}) {
      std::string joined;
      for (const std::string& piece : pieces(*pattern, text)) joined += piece;
      ASSERT_EQ(joined, text);
    }
  }
}

}  // namespace
}  // namespace ucas

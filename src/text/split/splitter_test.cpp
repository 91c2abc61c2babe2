#include "text/split/splitter.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

using Parts = std::vector<std::string>;

Parts cut(const Splitter& splitter, std::string_view text, bool first = true) {
  const Splitter::Pieces pieces = splitter.cut(text, first);
  return {pieces.text.begin(), pieces.text.end()};
}

Parts cut_at(const char* expression, SplitBehavior behavior, std::string_view text, bool invert = false) {
  Splitter splitter;
  splitter.add(SplitStep{Regex(expression, "here"), behavior, invert});
  return cut(splitter, text);
}

// The examples of Hugging Face's documentation of these words.
TEST(splitter, each_behaviour_puts_a_match_where_its_name_says) {
  const char* text = "the-final--countdown";
  EXPECT_EQ(cut_at("-", SplitBehavior::removed, text), (Parts{"the", "final", "countdown"}));
  EXPECT_EQ(cut_at("-", SplitBehavior::isolated, text), (Parts{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(cut_at("-", SplitBehavior::merged_with_previous, text), (Parts{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(cut_at("-", SplitBehavior::merged_with_next, text), (Parts{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(cut_at("-", SplitBehavior::contiguous, text), (Parts{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(cut_at("[^-]+", SplitBehavior::removed, text, true), (Parts{"the", "final", "countdown"}));
}

TEST(splitter, steps_work_on_the_pieces_of_the_step_before) {
  Splitter splitter;
  splitter.add(SplitStep{std::string(" "), SplitBehavior::removed});
  splitter.add(SplitStep{&is_numeric});
  splitter.add(SplitStep{&is_punctuation, SplitBehavior::contiguous});
  splitter.add(PrefixSpaceStep{});
  EXPECT_EQ(cut(splitter, "a12 b!?c"), (Parts{" a", " 1", " 2", " b", " !?", " c"}));
  EXPECT_EQ(cut(splitter, ""), Parts{});
}

TEST(splitter, metaspace_writes_spaces_and_begins_what_the_scheme_says) {
  for (const auto& [scheme, first, later] :
       {std::tuple(PrependScheme::always, "_a", "_a"), std::tuple(PrependScheme::first, "_a", "a"),
        std::tuple(PrependScheme::never, "a", "a")}) {
    Splitter splitter;
    splitter.add(MetaspaceStep{"_", scheme, true});
    EXPECT_EQ(cut(splitter, "a  b"), (Parts{first, "_", "_b"}));
    EXPECT_EQ(cut(splitter, "a", false), Parts{later});
    EXPECT_EQ(cut(splitter, " a", false), Parts{"_a"});
  }
}

TEST(splitter, bytes_that_are_not_utf8_are_of_no_class_and_stay) {
  EXPECT_EQ(cut_at(R"(\p{L}+|\s)", SplitBehavior::isolated, "ab\xFF\xE2 \xE2\x82"),
            (Parts{"ab", "\xFF\xE2", " ", "\xE2\x82"}));
}

}  // namespace
}  // namespace ucas

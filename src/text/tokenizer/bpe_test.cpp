#include "text/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "base/str.h"

namespace ucas {
namespace {

using Ids = std::vector<int32_t>;

Bpe bytes_and(const std::vector<std::string>& more, bool ignore_merges = false) {
  std::vector<std::pair<std::string, int32_t>> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(std::string(1, static_cast<char>(b)), b);
  for (const std::string& token : more) tokens.emplace_back(token, static_cast<int32_t>(tokens.size()));
  return Bpe(std::move(tokens), ignore_merges);
}

Ids encode(const Bpe& bpe, std::string_view piece) {
  Ids ids;
  bpe.encode(piece, ids);
  return ids;
}

TEST(bpe, the_lowest_rank_goes_first_and_then_the_leftmost) {
  Bpe bpe = bytes_and({"ab", "bc", "abc"});
  ASSERT_EQ(bpe.add_merge("b", "c"), "");
  ASSERT_EQ(bpe.add_merge("a", "b"), "");
  EXPECT_EQ(encode(bpe, "abc"), (Ids{'a', 257}));
  EXPECT_EQ(encode(bpe, "abab"), (Ids{256, 256}));
  ASSERT_EQ(bpe.add_merge("a", "bc"), "");
  EXPECT_EQ(encode(bpe, "abc"), Ids{258});
  EXPECT_EQ(encode(bpe, ""), Ids{});
}

TEST(bpe, equal_bytes_pair_up_from_the_left) {
  Bpe bpe = bytes_and({"aa"});
  ASSERT_EQ(bpe.add_merge("a", "a"), "");
  EXPECT_EQ(encode(bpe, "aaa"), (Ids{256, 'a'}));
  EXPECT_EQ(encode(bpe, "aaaaa"), (Ids{256, 256, 'a'}));
}

TEST(bpe, a_token_that_no_merges_reach_is_never_produced_unless_merges_are_ignored) {
  EXPECT_EQ(encode(bytes_and({"ab"}), "ab"), (Ids{'a', 'b'}));
  EXPECT_EQ(encode(bytes_and({"ab"}, true), "ab"), Ids{256});
  EXPECT_EQ(encode(bytes_and({"ab"}, true), "abc"), (Ids{'a', 'b', 'c'}));
}

TEST(bpe, merges_of_unknown_parts_and_doubled_merges_are_told) {
  Bpe bpe = bytes_and({"ab"});
  EXPECT_EQ(bpe.add_merge("ab", "c"), "\"abc\" is not in the vocabulary");
  EXPECT_EQ(bpe.add_merge("xy", "c"), "\"xy\" is not in the vocabulary");
  EXPECT_EQ(bpe.add_merge("a", "b"), "");
  EXPECT_EQ(bpe.add_merge("a", "b"), "the pair \"a\" \"b\" was merged before");
}

TEST(bpe, missing_bytes_are_found) {
  std::vector<std::pair<std::string, int32_t>> tokens;
  for (int b = 0; b < 256; ++b) {
    if (b != 0x41) tokens.emplace_back(std::string(1, static_cast<char>(b)), b);
  }
  EXPECT_EQ(Bpe(tokens, false).missing_bytes(), (std::vector<uint8_t>{0x41}));
  EXPECT_TRUE(bytes_and({}).missing_bytes().empty());
}

TEST(bpe, a_byte_without_a_token_is_dropped_before_the_merges_or_becomes_the_unknown_token) {
  // 0x04 is spelled as U+0104, whose bytes are C4 84.
  const std::vector<std::pair<std::string, int32_t>> tokens = {{"?", 0}, {"!", 1},      {"!!", 2},
                                                               {"t", 3}, {"<0xC4>", 4}, {"<0x84>", 5}};
  const auto ids_of = [&](UnknownSymbols rules, std::string_view text) {
    Bpe bpe(tokens, false, Bpe::Start::bytes, rules);
    EXPECT_EQ(bpe.add_merge("!", "!"), "");
    return encode(bpe, text);
  };
  EXPECT_EQ(ids_of({false, false, std::nullopt}, "!\x04!"), Ids{2});
  EXPECT_EQ(ids_of({false, false, std::nullopt}, "\x04\x13"), Ids{});
  EXPECT_EQ(ids_of({false, false, 0}, "!\x04\x13!t"), (Ids{1, 0, 0, 1, 3}));
  EXPECT_EQ(ids_of({false, true, 0}, "!\x04\x13!t\x04"), (Ids{1, 0, 1, 3, 0}));
  EXPECT_EQ(ids_of({true, true, 0}, "!\x04\x13!t"), (Ids{1, 4, 5, 0, 1, 3}));
  EXPECT_EQ(ids_of({true, false, std::nullopt}, std::string(100, '\x04')).size(), 200u) << "two tokens of a byte";
}

TEST(bpe, characters_without_a_token_become_bytes_or_the_unknown_token) {
  std::vector<std::pair<std::string, int32_t>> tokens = {{"?", 0},      {"a", 1},       {"<0xC3>", 2},
                                                         {"<0xA9>", 3}, {"a\u00E8", 4}, {"\u00E8", 5}};
  auto ids_of = [&](UnknownSymbols rules, std::string_view text) {
    Bpe bpe(tokens, false, Bpe::Start::characters, rules);
    EXPECT_EQ(bpe.add_merge("a", "\u00E8"), "");
    return encode(bpe, text);
  };
  const std::string_view text = "a\u00E8\u00E9b\u20ACa";  // e acute has its bytes; b and the euro have nothing
  EXPECT_EQ(ids_of({true, false, 0}, text), (Ids{4, 2, 3, 0, 0, 1}));
  EXPECT_EQ(ids_of({true, true, 0}, text), (Ids{4, 2, 3, 0, 1}));
  EXPECT_EQ(ids_of({false, true, 0}, text), (Ids{4, 0, 1}));
  EXPECT_EQ(ids_of({true, false, std::nullopt}, text), (Ids{4, 2, 3, 1}));
  EXPECT_EQ(ids_of({true, false, 0}, "b\u00E9b"), (Ids{2, 3, 0, 0})) << "as in Hugging Face: a byte overtakes";
}

using WordList = std::vector<std::string>;

// The first pair of the lowest rank becomes one, until no pair has a merge.
WordList by_definition(const std::string& piece, const std::vector<std::pair<std::string, std::string>>& merges) {
  WordList parts;
  for (char byte : piece) parts.emplace_back(1, byte);
  while (true) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const size_t rank = std::ranges::find(merges, std::pair(parts[i], parts[i + 1])) - merges.begin();
      if (rank < best) best = rank, at = i;
    }
    if (best == merges.size()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Vocabularies no trainer would make: ranks in any order, so that a merge can open one of lower rank.
TEST(bpe, merges_are_those_of_the_definition_on_any_vocabulary) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, 1);
    std::vector<std::string> words = {"a", "b", "c"}, added;
    std::set<std::string> seen(words.begin(), words.end());
    std::vector<std::pair<std::string, std::string>> merges;
    std::set<std::pair<std::string, std::string>> paired;
    for (int i = 0; i < 40; ++i) {
      std::string left = words[rng.below(words.size())], right = words[rng.below(words.size())];
      if (left.size() + right.size() > 12 || !paired.emplace(left, right).second) continue;
      merges.emplace_back(left, right);
      if (seen.insert(left + right).second) {
        words.push_back(left + right);
        added.push_back(left + right);
      }
    }
    for (size_t i = merges.size(); i > 1; --i) std::swap(merges[i - 1], merges[rng.below(i)]);
    Bpe bpe = bytes_and(added);
    for (const auto& [left, right] : merges) ASSERT_EQ(bpe.add_merge(left, right), "");
    for (int text = 0; text < 20; ++text) {
      std::string piece;
      for (int64_t length = rng.below(150); length > 0; --length) piece += static_cast<char>('a' + rng.below(3));
      WordList got;
      for (int32_t id : encode(bpe, piece)) got.push_back(id < 256 ? std::string(1, char(id)) : added[id - 256]);
      ASSERT_EQ(got, by_definition(piece, merges)) << "seed " << seed << " piece " << piece;
    }
  }
}

}  // namespace
}  // namespace ucas

#include "train/signals/balanced_pack.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/model.h"

namespace ucas {
namespace {

TEST(pack, keeps_order_and_budget) {
  std::vector<int64_t> lengths{3, 4, 5, 12, 1, 0, 9};
  auto batches = pack(lengths, 10);
  ASSERT_EQ(batches.size(), 4u);
  EXPECT_EQ(batches[0].last, 2);  // 3 + 4; 5 more would be 12
  EXPECT_EQ(batches[1].last, 3);
  EXPECT_EQ(batches[2].last, 4);  // 12 alone is above the budget and is alone
  EXPECT_EQ(batches[3].tokens, 10);
}

TEST(pack, a_prefix_is_counted_where_it_is_not_shared_with_the_sequence_before) {
  const std::vector<int64_t> lengths{3, 4, 5, 2, 6}, prefix{10, 10, 10, 4, 4};
  const std::vector<uint8_t> shares{0, 1, 1, 0, 1};
  const auto batches = pack(lengths, 20, prefix, shares);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0].tokens, 10 + 3 + 4);  // 5 more would be 22
  EXPECT_EQ(batches[1].tokens, 10 + 5);      // 4 + 2 more would be 21
  EXPECT_EQ(batches[2].tokens, 4 + 2 + 6);
}

TEST(pack, nothing_gives_nothing) { EXPECT_TRUE(pack({}, 5).empty()); }

TEST(pack, every_sequence_is_in_exactly_one_batch_under_the_budget) {
  EXPECT_TRUE(rc::check([] {
    auto lengths = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 50));
    auto budget = *rc::gen::inRange<int64_t>(1, 80);
    int64_t next = 0;
    for (const MicroBatch& b : pack(lengths, budget)) {
      RC_ASSERT(b.first == next);
      RC_ASSERT(b.last > b.first);
      int64_t tokens = 0, filled = 0;
      for (int64_t i = b.first; i < b.last; ++i) {
        tokens += lengths[static_cast<size_t>(i)];
        filled += lengths[static_cast<size_t>(i)] > 0 ? 1 : 0;
      }
      RC_ASSERT(tokens == b.tokens);
      RC_ASSERT(tokens <= budget || filled == 1);
      next = b.last;
    }
    RC_ASSERT(next == static_cast<int64_t>(lengths.size()));
  }));
}

TEST(pack, sequences_lie_end_to_end_with_their_own_positions) {
  Packed packed;
  packed.append(std::vector<int32_t>{7, 8, 9});
  packed.append(std::vector<int32_t>{}, std::vector<int32_t>{5});
  EXPECT_EQ(packed.token, (std::vector<int32_t>{7, 8, 9, 5}));
  EXPECT_EQ(packed.position, (std::vector<int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(packed.begin, (std::vector<int64_t>{0, 3, 4}));
}

}  // namespace
}  // namespace ucas

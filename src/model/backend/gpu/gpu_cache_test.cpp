// The blocks of a GPU's cache against a model of them: over every short run of calls, and over long random ones, no
// block belongs to two responses unless they share it, none is lost, shared ones live as long as their last user, and
// one slot at full length always finds room.
#include "model/backend/gpu/gpu_cache.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/str.h"

namespace ucas {
namespace {

constexpr int64_t kBlock = gpu::kBlockTokens;

ModelConfig config_of_cache() {
  ModelConfig c;
  c.hidden_size = 8;
  c.num_hidden_layers = 1;
  c.num_attention_heads = c.num_key_value_heads = 1;
  c.head_dim = 8;
  c.intermediate_size = 8;
  c.vocab_size = 8;
  return c;
}

// Drives a cache and looks at its table after each call, as a kernel would read it.
class Driven {
 public:
  Driven(int64_t slots, int64_t length, int64_t tokens)
      : config_(config_of_cache()), shape_{config_}, cache_(shape_, slots, length, tokens, at::kCPU), tokens_(slots) {
    all_ = cache_.free_tokens() / kBlock;
  }
  int64_t free() const { return cache_.free_tokens() / kBlock; }
  int64_t all() const { return all_; }
  int64_t held(int64_t slot) const { return (tokens_[slot] + kBlock - 1) / kBlock; }

  bool reserve(int64_t slot, int64_t tokens) {
    const int64_t had = held(slot), before = free();
    const bool found = cache_.reserve(slot, tokens);
    const int64_t wanted = std::max(had, (tokens + kBlock - 1) / kBlock);
    EXPECT_EQ(found, wanted - had <= before) << "room is found exactly where there are blocks";
    // What could be taken stays with the slot, for it is asked again when others have gone.
    tokens_[slot] = found ? std::max(tokens_[slot], tokens) : (had + before) * kBlock;
    return found;
  }
  void release(int64_t slot) {
    cache_.release(slot);
    tokens_[slot] = 0;
  }
  // As the engine does: only where there is room for the block that is copied.
  bool copy(int64_t from, int64_t to, int64_t tokens) {
    if (tokens % kBlock != 0 && free() + freed_by(to) < 1) return false;
    cache_.copy(from, to, tokens);
    tokens_[to] = tokens;
    return true;
  }

  void check(const std::string& what) {
    cache_.upload();
    const gpu::Cache layer = cache_.layer(0);
    std::map<int32_t, std::vector<std::pair<int64_t, int64_t>>> users;
    for (int64_t slot = 0; slot < static_cast<int64_t>(tokens_.size()); ++slot) {
      for (int64_t i = 0; i < held(slot); ++i)
        users[layer.table[slot * layer.blocks_of_slot + i]].emplace_back(slot, i);
    }
    for (const auto& [block, places] : users) {
      EXPECT_GE(block, 0) << what;
      EXPECT_LE(block, all_) << what;  // and one of the padding
      std::set<int64_t> slots, indices;
      for (const auto& [slot, index] : places) slots.insert(slot), indices.insert(index);
      EXPECT_EQ(slots.size(), places.size()) << what << ": a slot has a block twice";
      EXPECT_EQ(indices.size(), 1u) << what << ": a shared block is the same part of every response";
      EXPECT_FALSE(users.count(spare_block()) > 0) << what << ": a response has the block of the padding";
    }
    EXPECT_EQ(static_cast<int64_t>(users.size()) + free(), all_) << what << ": blocks lost or counted twice";
  }

 private:
  int32_t spare_block() const {
    const gpu::Cache layer = cache_.layer(0);
    return layer.table[cache_.spare_slot() * layer.blocks_of_slot];
  }
  // Blocks that are free again once the slot has let go of them.
  int64_t freed_by(int64_t slot) {
    const gpu::Cache layer = cache_.layer(0);
    int64_t count = 0;
    cache_.upload();
    for (int64_t i = 0; i < held(slot); ++i) {
      const int32_t block = layer.table[slot * layer.blocks_of_slot + i];
      bool other = false;
      for (int64_t s = 0; s < static_cast<int64_t>(tokens_.size()); ++s)
        for (int64_t k = 0; k < held(s); ++k)
          other = other || (s != slot && layer.table[s * layer.blocks_of_slot + k] == block);
      count += other ? 0 : 1;
    }
    return count;
  }

  const ModelConfig config_;
  const BlockShape shape_;
  GpuCache cache_;
  std::vector<int64_t> tokens_;  // of each slot
  int64_t all_ = 0;
};

// Slot 0 is a prompt's, 1 and 2 are its responses'.
TEST(gpu_cache, every_short_run_of_calls_keeps_all_blocks) {
  constexpr int kCalls = 9, kLength = 5;
  const int64_t length = 2 * kBlock;
  int64_t runs = 1;
  for (int i = 0; i < kLength; ++i) runs *= kCalls;
  for (int64_t run = 0; run < runs; ++run) {
    Driven cache(3, length, 4 * kBlock);
    std::string what;
    int64_t left = run;
    for (int i = 0; i < kLength; ++i, left /= kCalls) {
      const auto call = static_cast<int>(left % kCalls);
      what += str(call, " ");
      if (call < 3)
        cache.reserve(call, cache.held(call) * kBlock + 1 <= length ? cache.held(call) * kBlock + 1 : length);
      if (call >= 3 && call < 6) cache.release(call - 3);
      if (call >= 6 && call < 8 && cache.held(0) > 0) cache.copy(0, call - 5, cache.held(0) * kBlock - 100);
      if (call == 8 && cache.held(0) > 0) cache.copy(0, 1, cache.held(0) * kBlock);
    }
    cache.check(what);
    for (int64_t slot = 0; slot < 3; ++slot) cache.release(slot);
    EXPECT_EQ(cache.free(), cache.all()) << what;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(gpu_cache, long_random_runs_keep_all_blocks_and_one_response_at_full_length_always_fits) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    constexpr int64_t kSlots = 9, kPrompts = 2;
    const int64_t length = 3 * kBlock + 40;
    Driven cache(kSlots, length, static_cast<int64_t>(seed % 4) * 3 * kBlock);
    Rng rng(seed, 7);
    int64_t refused = 0;
    for (int call = 0; call < 400; ++call) {
      const int64_t slot = rng.below(kSlots), kind = rng.below(10);
      if (kind < 6) {
        const int64_t tokens = std::min(length, cache.held(slot) * kBlock + rng.below(kBlock) + 1);
        if (!cache.reserve(slot, tokens)) {
          ++refused;
          cache.release(slot);  // evicted
        }
      } else if (kind < 8) {
        cache.release(slot);
      } else if (const int64_t from = rng.below(kPrompts); cache.held(from) > 0 && slot >= kPrompts) {
        cache.copy(from, slot, std::max<int64_t>(cache.held(from) * kBlock - rng.below(2) * 17, 1));
      }
      cache.check(str("seed ", seed, " call ", call));
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(seed % 4 != 1 || refused > 0) << "so little room runs out";
    for (int64_t slot = 1; slot < kSlots; ++slot) cache.release(slot);
    cache.release(0);
    EXPECT_TRUE(cache.reserve(3, length));
  }
}

}  // namespace
}  // namespace ucas

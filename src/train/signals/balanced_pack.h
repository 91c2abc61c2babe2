// Cuts an update's responses into micro-batches for ranks that work at the same time: equally much work in each, not
// equally many of them.
// Deterministic. Gradients do not depend on the cut but for the order of their sums.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ucas {

// A response in order of its batch.
struct PackItem {
  int64_t index = 0;       // how the result refers to it
  int64_t group = 0;       // consecutive items of one group may share `prefix`
  int64_t tokens = 0;      // without the prefix
  int64_t prefix = 0;      // tokens before them
  double work = 0;         // of its tokens, which see the prefix
  double prefix_work = 0;  // of the prefix
};

struct BalancedPack {
  // Rank after rank, as many for each or nearly: [N r / ranks, N (r + 1) / ranks) of N are rank r's. In each ascending
  // items; none is empty.
  std::vector<std::vector<int64_t>> parts;
  // Of the time of all ranks until the last one has worked off its parts, the share in which they work.
  double used = 1;
  double work = 0;  // of all parts together
};

// As few micro-batches a rank as have at most `max_tokens` each, unless one item alone has more; but `least`. `share`:
// items of a group in one micro-batch have their prefix once; then consecutive items stay together as far as that is
// faster.
BalancedPack balanced_pack(std::span<const PackItem> items, int64_t ranks, int64_t max_tokens, bool share,
                           int64_t least = 1);

// The same for waves of whatever number of ranks, on which nothing here depends: the most work first, so that those of
// a wave are alike, and in a number that many small powers of two divide, for up to half as many more.
BalancedPack pack_for_waves(std::span<const PackItem> items, int64_t max_tokens, bool share);

// Cuts a batch into micro-batches under a token budget.
// In order and deterministic; gradients do not depend on the cut (exact accumulation), memory does.

struct MicroBatch {
  int64_t first = 0, last = 0;  // sequences [first, last)
  int64_t tokens = 0;
};

// Each micro-batch holds at most `max_tokens`, unless a single sequence alone is longer. Sequences of length 0 ride
// along with those next to them. Where `prefix` is not empty, sequence i is prefix[i] tokens longer if it is the first
// of its micro-batch or does not share them with the one before it (shares[i]).
std::vector<MicroBatch> pack(std::span<const int64_t> lengths, int64_t max_tokens, std::span<const int64_t> prefix = {},
                             std::span<const uint8_t> shares = {});

}  // namespace ucas

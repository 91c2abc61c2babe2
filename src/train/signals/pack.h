// Cuts a batch into micro-batches under a token budget.
// In order and deterministic; gradients do not depend on the cut (exact accumulation), memory does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ucas {

struct MicroBatch {
  int64_t first = 0, last = 0;  // sequences [first, last)
  int64_t tokens = 0;
};

// Each micro-batch holds at most `max_tokens`, unless a single sequence alone is longer. Sequences of length 0 ride
// along with their neighbours. Where `prefix` is not empty, sequence i is prefix[i] tokens longer if it is the first of
// its micro-batch or does not share them with the one before it (shares[i]).
std::vector<MicroBatch> pack(std::span<const int64_t> lengths, int64_t max_tokens, std::span<const int64_t> prefix = {},
                             std::span<const uint8_t> shares = {});

}  // namespace ucas

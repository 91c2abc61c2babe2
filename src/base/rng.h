// Counter-based randomness: a draw is a pure function of its key, so results do not depend on batching, threads,
// admission order or resume. Philox4x32-10 (Salmon et al. 2011).
// Threads: any; no state is shared.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace ucas {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a sampled token's randomness is keyed by. `step` separates training steps from each other (evaluation uses
// its own range, see rollout.h); `problem` is the index in the data file; `response` the index in the group;
// `position` the index of the token in the response.
struct SampleKey {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t problem = 0;
  uint32_t response = 0;
  uint32_t position = 0;
};

// Uniform in [0, 1) with 53 random bits.
double uniform(const SampleKey& key);

// A stream of draws under one (seed, stream) pair, for generators and initialisation.
class Rng {
 public:
  Rng(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}
  uint32_t next();
  double uniform();          // [0, 1)
  int64_t below(int64_t n);  // 0 .. n-1, unbiased
  double normal();           // standard normal (Box-Muller)

 private:
  uint64_t seed_, stream_, block_ = 0;
  std::array<uint32_t, 4> buffer_{};
  int used_ = 4;
};

// The order of one epoch: a permutation of 0..n-1 that depends on (seed, epoch) alone.
std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t n);

}  // namespace ucas

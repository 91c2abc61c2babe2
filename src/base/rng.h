// Counter-based randomness: a number is a pure function of its key, so results do not depend on batching, threads,
// admission order or resume. Philox4x32-10 (Salmon et al. 2011). All of it is inline and constexpr, so that device code
// samples by the same lines.
// Threads: any; no state is shared.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace ucas {

constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter[0], p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

constexpr std::array<uint32_t, 2> philox_key(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// In [0, 1), from the upper 53 of 64 random bits.
constexpr double to_unit(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1.0p-53;
}

// What a sampled token's randomness is keyed by. `step` separates training steps from each other (evaluation uses
// its own range, see evaluate/engine/evaluator.h); `problem` is the index in the data file; `response` the index in the
// group; `position` the index of the token in the response.
struct SampleKey {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t problem = 0;
  uint32_t response = 0;
  uint32_t position = 0;
};

// Uniform in [0, 1) with 53 random bits.
constexpr double uniform(const SampleKey& key) {
  const auto random = philox({key.position, key.response, key.problem, key.step}, philox_key(key.seed));
  return to_unit(random[0], random[1]);
}

// A stream of numbers under one (seed, stream) pair, for generators and initialisation.
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

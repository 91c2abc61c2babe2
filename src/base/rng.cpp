#include "base/rng.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace ucas {

uint32_t Rng::next() {
  if (used_ == 4) {
    // The high bit pattern of the stream keeps these numbers apart from sampling keys with the same seed.
    buffer_ = philox({static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                      static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                     philox_key(seed_ ^ 0x5ca1ab1e0ddba11ull));
    ++block_;
    used_ = 0;
  }
  return buffer_[static_cast<size_t>(used_++)];
}

double Rng::uniform() {
  uint32_t high = next();
  return to_unit(high, next());
}

int64_t Rng::below(int64_t n) {
  auto range = static_cast<uint64_t>(n);
  uint64_t limit = UINT64_MAX - UINT64_MAX % range;
  while (true) {
    uint64_t high = next();
    uint64_t value = high << 32 | next();
    if (value < limit) return static_cast<int64_t>(value % range);
  }
}

double Rng::normal() {
  double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * uniform());
}

std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  Rng rng(seed, 0x0e90c400000000ull + static_cast<uint64_t>(epoch));
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(rng.below(i + 1))]);
  }
  return order;
}

}  // namespace ucas

#include "train/optimizer/dynamic_map.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace ucas {

namespace {

constexpr int kDecades = 7;

// The middles of `count` equal parts of 0.1 .. 1, times 10^(decade - 6).
std::vector<float> levels_of(bool with_sign) {
  std::vector<float> levels{0.0f};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int count = 1 << (with_sign ? decade : decade + 1);
    for (int i = 0; i < count; ++i) {
      const double middle = 0.1 + 0.9 * (i + 0.5) / count;
      levels.push_back(static_cast<float>(std::pow(10.0, decade - (kDecades - 1)) * middle));
    }
  }
  return levels;
}

}  // namespace

DynamicMap::DynamicMap(bool with_sign) : with_sign_(with_sign), levels_(levels_of(with_sign)) {
  const size_t count = levels_.size();
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    level_[i] = {levels_[i], last ? std::numeric_limits<float>::infinity() : levels_[i + 1],
                 last ? 0.0f : 1.0f / (levels_[i + 1] - levels_[i])};
    value_of_[i] = levels_[i];
    if (with_sign && i > 0) value_of_[256 - i] = -levels_[i];
  }
  uint8_t below = 0;
  for (uint32_t upper = 0; upper < start_.size(); ++upper) {
    const float x = std::bit_cast<float>(upper << 16);
    int passed = 0;
    for (; x >= level_[below].next; ++passed) ++below;
    UCAS_CHECK(passed <= 1, "expected one quantization level per upper half of an f32");
    start_[upper] = below;
  }
}

float DynamicMap::encode(const float* values, int64_t n, const uint32_t* chance, uint8_t* codes) const {
  constexpr uint32_t kSmallestNormal = 0x00800000, kInfinity = 0x7f800000, kMagnitude = 0x7fffffff;
  float x[kQuantBlock];
  uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(values[i]) & kMagnitude;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kInfinity) return std::numeric_limits<float>::infinity();
  const bool nothing = largest < kSmallestNormal;
  const float scale = nothing ? 0.0f : std::bit_cast<float>(largest) / levels_.back();
  const float inverse = nothing ? 0.0f : levels_.back() / std::bit_cast<float>(largest);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    x[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(values[i]) & kMagnitude) * inverse;
  }
  // No branches below: which way a value goes cannot be foreseen.
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t code = magnitude_code(x[i], chance[i]);
    const uint32_t minus = with_sign_ ? 0u - (std::bit_cast<uint32_t>(values[i]) >> 31) : 0u;
    const uint32_t lifted = with_sign_ ? 0u : static_cast<uint32_t>(code == 0) & static_cast<uint32_t>(x[i] > 0);
    codes[i] = static_cast<uint8_t>(((code + lifted) ^ minus) - minus);
  }
  return scale;
}

const DynamicMap& DynamicMap::of_means() {
  static const DynamicMap map(true);
  return map;
}

const DynamicMap& DynamicMap::of_squares() {
  static const DynamicMap map(false);
  return map;
}

}  // namespace ucas

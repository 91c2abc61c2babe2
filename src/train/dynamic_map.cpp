#include "train/dynamic_map.h"

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
  levels_above_.fill(std::numeric_limits<float>::infinity());
  inverse_gap_.assign(count, 0.0f);
  for (size_t i = 0; i + 1 < count; ++i) {
    levels_above_[i] = levels_[i + 1];
    inverse_gap_[i] = 1.0f / (levels_[i + 1] - levels_[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    value_of_[i] = levels_[i];
    if (with_sign && i > 0) value_of_[256 - i] = -levels_[i];
  }
  uint8_t below = 0;
  for (uint32_t upper = 0; upper < start_.size(); ++upper) {
    const float x = std::bit_cast<float>(upper << 16);
    int passed = 0;
    for (; x >= levels_above_[below]; ++passed) ++below;
    UCAS_CHECK(passed <= 1, "a level for each of the upper halves of a float");
    start_[upper] = below;
  }
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

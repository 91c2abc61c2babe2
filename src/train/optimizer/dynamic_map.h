// Eight bits for numbers of very different size: the dynamic map of Dettmers et al. 2022 ("8-bit Optimizers via
// Block-wise Quantization", 2.2). Levels are 0 and, in each decade from 1e-7..1e-6 up to 0.1..1, evenly spread ones,
// two times as many as in the decade below. A value is divided by the scale of its block (256 consecutive values)
// first, which maps the largest of them to the last level. LibTorch-free.
//
//   mean of gradients: 1, 2 .. 64 levels a decade, 127 above 0, with a sign; int8 codes -127..127, rounded to nearest
//   mean of squares: 2, 4 .. 128 levels a decade, 254 above 0; uint8 codes 0..254, rounded stochastically
//
// Three differences from bitsandbytes: the largest value of a block is exact, whatever its sign (there 1.0 has a code
// of its own, and -1.0 none); a square that is not 0 never becomes 0, for m / (sqrt 0 + eps) would be a huge step (Li
// et al. 2023, "Memory Efficient Optimizers with 4-bit States"); and squares are rounded stochastically, without bias,
// because beta2 = 0.999 moves them by less than half the distance of two levels, which rounding to nearest would undo.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace ucas {

constexpr int64_t kQuantBlock = 256;        // elements of one scale
constexpr int64_t kQuantizedFrom = 4'096;   // smaller tensors stay in f32, as with bitsandbytes: norms and biases
constexpr uint32_t kToTheNearest = 0x8000;  // as the chance of magnitude_code()

class DynamicMap {
 public:
  explicit DynamicMap(bool with_sign);
  static const DynamicMap& of_means();    // with sign
  static const DynamicMap& of_squares();  // without

  // The codes of one block of n <= kQuantBlock values; returns its scale. `chance` holds 16 random bits for each, or
  // kToTheNearest. A block whose largest value is below the smallest normal float counts as 0; where a value is not
  // finite the scale is infinite and the codes say nothing.
  float encode(const float* values, int64_t n, const uint32_t* chance, uint8_t* codes) const;
  void decode(const uint8_t* codes, int64_t n, float scale, float* values) const {
    for (int64_t i = 0; i < n; ++i) values[i] = value_of_[codes[i]] * scale;
  }

  // Levels that are not negative, rising from 0. The code of one with a sign is its index times the sign (two's
  // complement), of one without its index.
  const std::vector<float>& levels() const { return levels_; }
  bool with_sign() const { return with_sign_; }
  // No code: 255 without a sign, -128 with one.
  uint8_t unused() const { return with_sign_ ? 0x80 : 0xff; }

 private:
  struct Level {
    float value, next, inverse_gap;  // infinity and 0 after the last
  };
  // Index of the level below or above x in [0, last level]: above if the part of the way that x has gone exceeds
  // chance / 65536.
  uint32_t magnitude_code(float x, uint32_t chance) const {
    uint32_t below = start_[std::bit_cast<uint32_t>(x) >> 16];
    below += static_cast<uint32_t>(x >= level_[below].next);
    const float part = (x - level_[below].value) * level_[below].inverse_gap;
    return below + static_cast<uint32_t>(part * 65536.0f > static_cast<float>(static_cast<int32_t>(chance)));
  }

  bool with_sign_;
  std::vector<float> levels_;
  std::array<Level, 256> level_{};
  std::array<float, 256> value_of_{};  // of a code
  // The level at or below the smallest f32 with these upper 16 bits; no two levels share them, so one comparison is
  // left. Up to 1.0.
  std::array<uint8_t, 0x3f81> start_{};
};

}  // namespace ucas

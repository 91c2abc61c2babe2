// Running means of a parameter's gradient, or of its squares, between two updates: in f32, in bf16 (2 bytes an element)
// or in blocks of 8-bit codes (1 byte and 1/64, train/optimizer/dynamic_map.h). Arithmetic is in f32: an update reads a
// moment, changes it and writes it back. bf16 is rounded stochastically, so that the mean of many roundings is the
// value: with beta2 = 0.999 a step changes the mean of squares by less than half the distance of two bf16, and rounding
// to nearest would leave it unchanged. The rounding is a function of (parameter, update, element), without state:
// bit-identical for any threads and order, and after a resume. Threads: read_part and write_part: any, on different
// parts that begin at multiples of kQuantBlock.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model_options.h"
#include "model/model.h"
#include "train/optimizer/dynamic_map.h"

namespace ucas {

constexpr int64_t kMomentChunk = 16384;             // elements of one task on the CPU
constexpr int64_t kMomentSlice = int64_t{1} << 22;  // elements that other devices widen at a time
static_assert(kMomentChunk % kQuantBlock == 0 && kMomentSlice % kQuantBlock == 0);

struct Moment {
  at::Tensor values;  // shape of the parameter; f32, bf16 or codes: int8 with a sign, uint8 of squares
  at::Tensor scales;  // [ceil(elements / kQuantBlock)] f32 with codes, else undefined
  bool square = false;

  bool defined() const { return values.defined(); }
  bool is_f32() const { return values.scalar_type() == at::kFloat; }
  const DynamicMap& map() const { return square ? DynamicMap::of_squares() : DynamicMap::of_means(); }
};

// All zero, on the parameter's device. int8 is f32 for a parameter of fewer than kQuantizedFrom elements.
Moment make_moment(const at::Tensor& parameter, MomentType type, bool square);

// 32 random bits for every element.
struct Noise {
  uint32_t before, after;
  int64_t first = 0;  // element 0 of a part is this one of the parameter

  // Of the `which`th moment of one parameter in one update.
  static Noise of(int64_t parameter, int64_t update, int which, int64_t first = 0);
  uint32_t bits(int64_t element) const {
    element += first;
    const auto low = static_cast<uint32_t>(element), high = static_cast<uint32_t>(element >> 32);
    uint32_t x = low ^ before ^ high * 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x21f0aaadu;  // lowbias32 of C. Wellons: each bit of x moves each bit of the result
    x = (x ^ x >> 15) * 0xd35a2d97u;
    return x ^ x >> 15 ^ after;
  }
};

// The upper half of a finite value, after 16 random bits have been added to the lower half that is cut off.
inline uint16_t bf16_by_chance(float value, uint32_t chance) {
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + (chance & 0xffff)) >> 16);
}

// On the CPU: elements first .. first + n - 1 to and from `part`. write_part returns false if a value is not finite;
// the moment's values are then unspecified.
void read_part(const Moment& moment, int64_t first, int64_t n, float* part);
bool write_part(const Moment& moment, int64_t first, int64_t n, const float* part, const Noise& noise);

// The same in operations that every device has; parts are flat f32 tensors. That of an f32 moment shares its storage.
at::Tensor read_part(const Moment& moment, int64_t first, int64_t n);
void write_part(const Moment& moment, int64_t first, const at::Tensor& part, const Noise& noise);

// All of it, in its shape, by whichever of the two the device has; write_whole as write_part says.
at::Tensor read_whole(const Moment& moment);
bool write_whole(const Moment& moment, const at::Tensor& whole, const Noise& noise);

// A norm is not finite if any value is not.
bool all_finite(const at::Tensor& values);

}  // namespace ucas

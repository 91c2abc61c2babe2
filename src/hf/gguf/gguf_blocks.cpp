#include "hf/gguf/gguf_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/str.h"
#include "hf/safetensors.h"

namespace ucas {

namespace {

// Scales have 11 significant bits (f16) and what multiplies them at most 11 more, so the products below are exact in
// f32 wherever something is added to them: fused or not, the sum is the same.

constexpr int64_t kSmall = 32, kSuper = 256;  // values of a block, and of a K type's

uint16_t bits_at(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return bits;
}
float half_at(const uint8_t* at) { return f32_of_f16(bits_at(at)); }

void widen_f32(const uint8_t* data, int64_t n, float* out) { std::memcpy(out, data, static_cast<size_t>(n) * 4); }

void widen_f16(const uint8_t* data, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = half_at(data + 2 * i);
}

void widen_bf16(const uint8_t* data, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = static_cast<uint32_t>(bits_at(data + 2 * i)) << 16;
    std::memcpy(out + i, &bits, 4);
  }
}

// Q4_0, Q4_1, Q5_0, Q5_1: value i of 16 is a low half-byte, value 16 + i the high one; Q5 has a fifth bit of each in a
// word of 32. d q + m, or d (q - half of the range) where there is no offset m.
template <int kBits, bool kOffset>
void widen_small(const uint8_t* block, int64_t blocks, float* out) {
  constexpr int64_t kFifth = kBits == 5 ? 4 : 0, kHead = kOffset ? 4 : 2, kBytes = kHead + kFifth + kSmall / 2;
  constexpr int kMiddle = kOffset ? 0 : 1 << (kBits - 1);
  for (; blocks > 0; --blocks, block += kBytes, out += kSmall) {
    const float d = half_at(block), m = kOffset ? half_at(block + 2) : 0;
    uint32_t fifth = 0;
    if constexpr (kBits == 5) std::memcpy(&fifth, block + kHead, 4);
    const uint8_t* halves = block + kHead + kFifth;
    for (int64_t i = 0; i < kSmall; ++i) {
      const int low = i < kSmall / 2 ? halves[i] & 15 : halves[i - kSmall / 2] >> 4;
      const auto q = static_cast<float>((low | static_cast<int>(fifth >> i & 1u) << 4) - kMiddle);
      out[i] = kOffset ? d * q + m : d * q;
    }
  }
}

void widen_q8_0(const uint8_t* block, int64_t blocks, float* out) {
  for (; blocks > 0; --blocks, block += 2 + kSmall, out += kSmall) {
    const float d = half_at(block);
    for (int64_t i = 0; i < kSmall; ++i) out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
  }
}

// Q4_K, Q5_K: eight parts of 32 values, each with a scale and an offset of 6 bits in 12 bytes. Parts 0 to 3 have theirs
// in the low bits of bytes 0 to 3 and 4 to 7; those of parts 4 to 7 are put together of a half of bytes 8 to 11 and the
// two high bits that the others leave.
struct PartScale {
  int scale, offset;
};
PartScale part_scale(const uint8_t* bytes, int64_t part) {
  if (part < 4) return {bytes[part] & 63, bytes[part + 4] & 63};
  const uint8_t both = bytes[part + 4];
  return {(both & 15) | (bytes[part - 4] >> 6) << 4, both >> 4 | (bytes[part] >> 6) << 4};
}

template <int kBits>
void widen_k(const uint8_t* block, int64_t blocks, float* out) {
  constexpr int64_t kFifth = kBits == 5 ? kSuper / 8 : 0, kBytes = 16 + kFifth + kSuper / 2;
  for (; blocks > 0; --blocks, block += kBytes) {
    const float d = half_at(block), m = half_at(block + 2);
    const uint8_t *fifth = block + 16, *halves = block + 16 + kFifth;
    for (int64_t part = 0; part < 8; ++part, out += 32) {
      const PartScale s = part_scale(block + 4, part);
      const float scale = d * static_cast<float>(s.scale), offset = m * static_cast<float>(s.offset);
      for (int64_t i = 0; i < 32; ++i) {
        int q = halves[part / 2 * 32 + i] >> (part % 2 * 4) & 15;
        if constexpr (kBits == 5) q |= (fifth[i] >> part & 1) << 4;
        out[i] = scale * static_cast<float>(q) - offset;
      }
    }
  }
}

// Two halves of 128 values: four low bits of each in 64 bytes, two high ones in 32, and a scale of a byte for each 16.
void widen_q6_k(const uint8_t* block, int64_t blocks, float* out) {
  for (; blocks > 0; --blocks, block += 210) {
    const uint8_t *low = block, *high = block + 128, *scales = block + 192;
    const float d = half_at(block + 208);
    for (int64_t half = 0; half < 2; ++half, low += 64, high += 32, scales += 8, out += 128) {
      for (int64_t i = 0; i < 128; ++i) {
        const int bits = (low[i % 64] >> (i / 64 * 4) & 15) | (high[i % 32] >> (i / 32 * 2) & 3) << 4;
        const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
        out[i] = scale * static_cast<float>(bits - 32);
      }
    }
  }
}

constexpr GgufType kGgufTypes[] = {
    {0, "F32", 1, 4, widen_f32},
    {1, "F16", 1, 2, widen_f16},
    {30, "BF16", 1, 2, widen_bf16},
    {2, "Q4_0", kSmall, 18, widen_small<4, false>},
    {3, "Q4_1", kSmall, 20, widen_small<4, true>},
    {6, "Q5_0", kSmall, 22, widen_small<5, false>},
    {7, "Q5_1", kSmall, 24, widen_small<5, true>},
    {8, "Q8_0", kSmall, 34, widen_q8_0},
    {12, "Q4_K", kSuper, 144, widen_k<4>},
    {13, "Q5_K", kSuper, 176, widen_k<5>},
    {14, "Q6_K", kSuper, 210, widen_q6_k},
};

// For refusals. Numbers that are missing were taken back by the format.
constexpr std::pair<uint32_t, const char*> kOtherTypes[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"}, {39, "MXFP4"},  {40, "NVFP4"},
};

}  // namespace

const GgufType* find_gguf_type(uint32_t id) {
  const GgufType* row = std::ranges::find(kGgufTypes, id, &GgufType::id);
  return row == std::end(kGgufTypes) ? nullptr : row;
}

std::string gguf_types() {
  std::vector<std::string> read;
  for (const GgufType& type : kGgufTypes) read.emplace_back(type.name);
  return join(read, ", ");
}

std::string gguf_type_name(uint32_t id) {
  if (const GgufType* type = find_gguf_type(id)) return type->name;
  for (const auto& [number, name] : kOtherTypes)
    if (number == id) return name;
  return str(id);
}

}  // namespace ucas

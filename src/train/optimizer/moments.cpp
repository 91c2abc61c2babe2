#include "train/optimizer/moments.h"
#include "model/tensor/parallel.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/rng.h"

namespace ucas {

namespace {

constexpr uint64_t kNoiseSeed = 0x6d6f6d656e7473;  // "moments": of every run, for its own seed is for what is sampled

int64_t blocks_of(int64_t elements) { return (elements + kQuantBlock - 1) / kQuantBlock; }

// --- CPU --------------------------------------------------------------------------------------------------------

// False if any of them is not finite.
bool write_bf16(uint16_t* __restrict to, int64_t first, int64_t n, const float* __restrict part, const Noise& noise) {
  const Noise chance = noise;
  uint32_t nonfinite = 0;
#pragma omp simd reduction(| : nonfinite)
  for (int64_t i = 0; i < n; ++i) {
    to[i] = bf16_by_chance(part[i], chance.bits(first + i));
    nonfinite |= (to[i] & 0x7f80u) == 0x7f80u ? 1 : 0;
  }
  return nonfinite == 0;
}

void read_bf16(const uint16_t* __restrict from, int64_t n, float* __restrict part) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) part[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i]) << 16);
}

void write_chances(const Noise& noise, int64_t first, int64_t n, uint32_t* __restrict chance) {
  const Noise of = noise;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) chance[i] = of.bits(first + i) & 0xffff;
}

bool write_codes(const Moment& moment, int64_t first, int64_t n, const float* part, const Noise& noise) {
  const DynamicMap& map = moment.map();
  auto* codes = static_cast<uint8_t*>(moment.values.mutable_data_ptr()) + first;
  float* scales = moment.scales.mutable_data_ptr<float>() + first / kQuantBlock;
  bool fine = true;
  uint32_t chance[kQuantBlock];
  std::fill_n(chance, kQuantBlock, kToTheNearest);
  for (int64_t at = 0; at < n; at += kQuantBlock, ++scales) {
    const int64_t size = std::min(kQuantBlock, n - at);
    if (moment.square) write_chances(noise, first + at, size, chance);
    *scales = map.encode(part + at, size, chance, codes + at);
    fine = fine && std::isfinite(*scales);
  }
  return fine;
}

void read_codes(const Moment& moment, int64_t first, int64_t n, float* part) {
  const DynamicMap& map = moment.map();
  const auto* codes = static_cast<const uint8_t*>(moment.values.const_data_ptr()) + first;
  const float* scales = moment.scales.const_data_ptr<float>() + first / kQuantBlock;
  for (int64_t at = 0; at < n; at += kQuantBlock, ++scales) {
    map.decode(codes + at, std::min(kQuantBlock, n - at), *scales, part + at);
  }
}

// --- every device -----------------------------------------------------------------------------------------------

at::Tensor on_device_of(const Moment& moment, const std::vector<float>& values) {
  return at::tensor(values).to(moment.values.device());
}

// Noise::bits of elements first .. first + n - 1, the lower 16 of each, as int32.
at::Tensor chance_of(const Noise& noise, int64_t first, int64_t n, at::Device device) {
  constexpr int64_t kLow = 0xffffffff;
  first += noise.first;
  at::Tensor element = at::arange(first, first + n, at::TensorOptions().dtype(at::kLong).device(device));
  // GEMMs stay below 2^64, of which the lower half counts: int64 that wraps around is enough.
  const auto shifted = [](const at::Tensor& x, int64_t by) { return x.bitwise_xor(x.bitwise_right_shift(by)); };
  at::Tensor high = element.bitwise_right_shift(32).mul(int64_t{0x9e3779b9}).bitwise_and(kLow);
  at::Tensor x = element.bitwise_and(kLow).bitwise_xor(int64_t{noise.before}).bitwise_xor(high);
  x = shifted(x, 16).mul(int64_t{0x21f0aaad}).bitwise_and(kLow);
  x = shifted(x, 15).mul(int64_t{0xd35a2d97}).bitwise_and(kLow);
  x = shifted(x, 15).bitwise_xor(int64_t{noise.after});
  return x.bitwise_and(0xffff).to(at::kInt);
}

at::Tensor flat_part(const at::Tensor& whole, int64_t first, int64_t n) { return whole.view({-1}).narrow(0, first, n); }

// Flat values as rows of one block each, the last filled up with zeros.
at::Tensor rows_of_blocks(const at::Tensor& part) {
  const int64_t missing = blocks_of(part.numel()) * kQuantBlock - part.numel();
  return at::constant_pad_nd(part, {0, missing}).view({-1, kQuantBlock});
}

at::Tensor decoded(const Moment& moment, int64_t first, int64_t n) {
  const at::Tensor codes = flat_part(moment.values, first, n).to(at::kInt);
  at::Tensor values = on_device_of(moment, moment.map().levels()).index_select(0, codes.abs());
  if (moment.map().with_sign()) values.mul_(codes.sign());
  const at::Tensor scales = moment.scales.narrow(0, first / kQuantBlock, blocks_of(n)).unsqueeze(1);
  return rows_of_blocks(values).mul(scales).view({-1}).narrow(0, 0, n);
}

void encode(const Moment& moment, int64_t first, const at::Tensor& part, const Noise& noise) {
  const int64_t n = part.numel();
  const std::vector<float>& levels = moment.map().levels();
  const at::Tensor rows = rows_of_blocks(part), magnitude = rows.abs();
  const at::Tensor largest = magnitude.amax(1, /*keepdim=*/true);
  const at::Tensor counts = largest.ge(std::numeric_limits<float>::min());
  const at::Tensor inverse = at::where(counts, at::full_like(largest, levels.back()).div(largest), 0.0f);
  const at::Tensor x = magnitude.mul(inverse).view({-1}).narrow(0, 0, n);
  const at::Tensor level = on_device_of(moment, levels);
  // The level at or below x, and how far x is on the way to the next.
  const at::Tensor below = at::bucketize(x, level, /*out_int32=*/true, /*right=*/true).sub(1);
  const at::Tensor next = below.add(1).clamp_max(static_cast<int64_t>(levels.size()) - 1);
  const at::Tensor from = level.index_select(0, below), gap = level.index_select(0, next).sub(from);
  const at::Tensor part_of_way = at::where(gap.gt(0), x.sub(from).div(gap), 0.0f).mul(65536.0f);
  at::Tensor code = moment.square ? at::where(part_of_way.gt(chance_of(noise, first, n, part.device())), next, below)
                                  : at::where(part_of_way.gt(static_cast<float>(kToTheNearest)), next, below);
  if (moment.square) {
    code = at::where(x.gt(0), code.clamp_min(1), code);
  } else {
    code = code.mul(part.sign().to(code.scalar_type()));
  }
  flat_part(moment.values, first, n).copy_(code);
  const at::Tensor scale = at::where(counts, largest.div(levels.back()), 0.0f);
  moment.scales.narrow(0, first / kQuantBlock, blocks_of(n)).copy_(scale.view({-1}));
}

}  // namespace

Moment make_moment(const at::Tensor& parameter, MomentType type, bool square) {
  const int64_t n = parameter.numel();
  if (type == MomentType::int8 && n < kQuantizedFrom) type = MomentType::f32;
  const auto zeros = [&](at::IntArrayRef shape, at::ScalarType dtype) {
    return at::zeros(shape, at::TensorOptions().dtype(dtype).device(parameter.device()));
  };
  if (type == MomentType::f32) return {zeros(parameter.sizes(), at::kFloat), {}, square};
  if (type == MomentType::bf16) return {zeros(parameter.sizes(), at::kBFloat16), {}, square};
  return {zeros(parameter.sizes(), square ? at::kByte : at::kChar), zeros({blocks_of(n)}, at::kFloat), square};
}

Noise Noise::of(int64_t parameter, int64_t update, int which, int64_t first) {
  const auto u = static_cast<uint64_t>(update);
  const auto r = philox({static_cast<uint32_t>(u), static_cast<uint32_t>(u >> 32), static_cast<uint32_t>(parameter),
                         static_cast<uint32_t>(which)},
                        {static_cast<uint32_t>(kNoiseSeed), static_cast<uint32_t>(kNoiseSeed >> 32)});
  return {r[0], r[1], first};
}

void read_part(const Moment& moment, int64_t first, int64_t n, float* part) {
  if (moment.is_f32()) {
    std::copy_n(moment.values.const_data_ptr<float>() + first, n, part);
  } else if (moment.scales.defined()) {
    read_codes(moment, first, n, part);
  } else {
    read_bf16(static_cast<const uint16_t*>(moment.values.const_data_ptr()) + first, n, part);
  }
}

bool write_part(const Moment& moment, int64_t first, int64_t n, const float* part, const Noise& noise) {
  if (moment.is_f32()) {
    std::copy_n(part, n, moment.values.mutable_data_ptr<float>() + first);
    return true;  // that they are finite is for the update to say
  }
  if (moment.scales.defined()) return write_codes(moment, first, n, part, noise);
  return write_bf16(static_cast<uint16_t*>(moment.values.mutable_data_ptr()) + first, first, n, part, noise);
}

at::Tensor read_part(const Moment& moment, int64_t first, int64_t n) {
  if (moment.scales.defined()) return decoded(moment, first, n);
  return flat_part(moment.values, first, n).to(at::kFloat);
}

void write_part(const Moment& moment, int64_t first, const at::Tensor& part, const Noise& noise) {
  const int64_t n = part.numel();
  if (moment.scales.defined()) return encode(moment, first, part, noise);
  if (moment.is_f32()) {
    flat_part(moment.values, first, n).copy_(part);
    return;
  }
  const at::Tensor chance = chance_of(noise, first, n, part.device());
  const at::Tensor bits = part.contiguous().view(at::kInt).add(chance).bitwise_and(-0x10000);
  flat_part(moment.values, first, n).copy_(bits.view(at::kFloat));
}

at::Tensor read_whole(const Moment& moment) {
  if (moment.is_f32()) return moment.values;
  const int64_t n = moment.values.numel();
  at::Tensor whole = at::empty(moment.values.sizes(), moment.values.options().dtype(at::kFloat));
  if (moment.values.is_cpu()) {
    float* out = whole.mutable_data_ptr<float>();
    parallel_for((n + kMomentChunk - 1) / kMomentChunk, 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kMomentChunk;
      read_part(moment, first, std::min(n, end * kMomentChunk) - first, out + first);
    });
    return whole;
  }
  for (int64_t first = 0; first < n; first += kMomentSlice) {
    const int64_t size = std::min(kMomentSlice, n - first);
    flat_part(whole, first, size).copy_(read_part(moment, first, size));
  }
  return whole;
}

bool write_whole(const Moment& moment, const at::Tensor& whole, const Noise& noise) {
  if (whole.is_same(moment.values)) return true;
  const int64_t n = whole.numel();
  if (moment.values.is_cpu()) {
    const float* in = whole.const_data_ptr<float>();
    std::atomic<bool> fine = true;
    parallel_for((n + kMomentChunk - 1) / kMomentChunk, 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kMomentChunk;
      if (!write_part(moment, first, std::min(n, end * kMomentChunk) - first, in + first, noise)) fine = false;
    });
    return fine;
  }
  for (int64_t first = 0; first < n; first += kMomentSlice) {
    write_part(moment, first, flat_part(whole, first, std::min(kMomentSlice, n - first)), noise);
  }
  return true;
}

bool all_finite(const at::Tensor& values) {
  return std::isfinite(at::linalg_vector_norm(values, 1, {}, false, at::kDouble).item<double>());
}

}  // namespace ucas

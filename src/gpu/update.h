// Kernels of the optimizer's loops over elements; arguments and equations: gpu/kernels.h.
#pragma once

#include "gpu/kernels.h"
#include "gpu/rows.h"

namespace ucas::gpu {

// As train/optimizer/adamw.cpp's update_elements: a mean that is not finite, and a square below 0, show in the
// parameter; an infinite square does not.
UCAS_ON_DEVICE bool is_finite_float(float x) { return (as_bits(x) & 0x7f800000u) != 0x7f800000u; }
template <class Arguments>
UCAS_ON_DEVICE bool update_element(const Arguments& a, float& p, float g, float& m, float& v) {
  const float gradient = g * a.clip;
  m = a.beta1 * m + (1 - a.beta1) * gradient;
  v = a.beta2 * v + (1 - a.beta2) * gradient * gradient;
  p = p * a.keep - a.step_size * (m / (sqrtf(v) / a.root_correction + a.eps));
  return is_finite_float(p) && is_finite_float(v);
}

struct AdamWElements {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 6;
  static constexpr const char* kName = "adamw";
  AdamW a;

  Grid grid() const { return {(a.n + 4 * kThreads - 1) / (4 * kThreads)}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    thread_block.each([&](int lane) {
      const int64_t at = (thread_block.x * kThreads + lane) * 4;
      bool fine = true;
      if (at + 4 <= a.n) {
        fine = update_four(at);
      } else {
        for (int64_t i = at; i < a.n; ++i) fine = update_one(i) && fine;
      }
      if (!fine) *a.spoilt = 1;  // every lane that writes, writes this
    });
  }

 private:
  UCAS_ON_DEVICE bool update_four(int64_t at) const {
    Floatx4 p = load4(a.p + at), m = load4(a.m + at), v = load4(a.v + at);
    const Floatx4 g = load4(a.g + at);
    bool fine = true;
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) fine = update_element(a, p.v[j], g.v[j], m.v[j], v.v[j]) && fine;
    store4(a.p + at, p);
    store4(a.g + at, zero4());
    store4(a.m + at, m);
    store4(a.v + at, v);
    if (a.p_narrow != nullptr) store4(a.p_narrow + at, p);
    return fine;
  }
  UCAS_ON_DEVICE bool update_one(int64_t i) const {
    const bool fine = update_element(a, a.p[i], a.g[i], a.m[i], a.v[i]);
    a.g[i] = 0;
    if (a.p_narrow != nullptr) a.p_narrow[i] = narrow(a.p[i]);
    return fine;
  }
};

// A warp has a block of codes to itself: two fours a lane, and one butterfly for both scales.
template <bool kCodes>
struct AdamWPackedElements {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 4;
  static constexpr const char* kName = "adamw_packed";
  AdamWPacked a;

  Grid grid() const { return {(a.n + kOfBlock - 1) / kOfBlock}; }
  int shared_bytes() const { return kCodes ? static_cast<int>(4 * kCodeLevels * sizeof(float)) : 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    Maps maps{};
    if constexpr (kCodes) maps = maps_of(thread_block);
    const auto block_of = [&](int lane) { return thread_block.x * (kThreads / 32) + lane / 32; };
    typename ThreadBlock::template Local<Numbers> kept;
    typename ThreadBlock::template Local<Largest> largest;
    thread_block.reduce_of_warp([&](int lane) { return update(block_of(lane), lane % 32, maps, kept[lane]); },
                                [](const Largest& x, const Largest& y) {
                                  return Largest{x.mean > y.mean ? x.mean : y.mean,
                                                 x.square > y.square ? x.square : y.square, x.fine & y.fine};
                                },
                                largest);
    thread_block.each_of_warp([&](int lane) { keep(block_of(lane), lane % 32, maps, kept[lane], largest[lane]); });
  }

 private:
  static constexpr int kFours = static_cast<int>(kCodeBlock) / (32 * 4);
  static constexpr int64_t kOfBlock = kThreads / 32 * kCodeBlock;
  struct Numbers {
    float m[kFours * 4], v[kFours * 4];
  };
  struct Largest {  // magnitudes of a block, as bits; 1: all is finite
    uint32_t mean, square, fine;
  };
  struct Map {
    const float *level, *gap;
  };
  struct Maps {
    Map mean, square;
  };
  struct Scale {
    float scale, inverse;
  };

  template <class ThreadBlock>
  UCAS_ON_DEVICE Maps maps_of(ThreadBlock& thread_block) const {
    float* to = thread_block.template shared<float>();
    constexpr int n = static_cast<int>(kCodeLevels);
    thread_block.each([&](int lane) {
      for (int i = lane; i < n; i += kThreads) {
        to[i] = a.mean.level[i];
        to[n + i] = a.mean.gap[i];
        to[2 * n + i] = a.square.level[i];
        to[3 * n + i] = a.square.gap[i];
      }
    });
    return {{to, to + n}, {to + 2 * n, to + 3 * n}};
  }
  static UCAS_ON_DEVICE int64_t place(int64_t block, int lane, int four) {
    return block * kCodeBlock + (four * 32 + lane) * 4;
  }

  // Reads, updates and writes p and g; the new moments stay in registers until their block's scales are known.
  UCAS_ON_DEVICE Largest update(int64_t block, int lane, const Maps& maps, Numbers& kept) const {
    Largest largest{0, 0, 1};
    UCAS_UNROLL
    for (int four = 0; four < kFours; ++four) {
      const int64_t at = place(block, lane, four);
      float *m = kept.m + four * 4, *v = kept.v + four * 4;
      if (at + 4 <= a.n) {
        read4(a.mean, maps.mean, true, at, m);
        read4(a.square, maps.square, false, at, v);
        Floatx4 p = load4(a.p + at);
        const Floatx4 g = load4(a.g + at);
        UCAS_UNROLL
        for (int j = 0; j < 4; ++j) update(p.v[j], g.v[j], m[j], v[j], largest);
        store4(a.p + at, p);
        store4(a.g + at, zero4());
        if (a.p_narrow != nullptr) store4(a.p_narrow + at, p);
        continue;
      }
      UCAS_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int64_t i = at + j;
        if (i >= a.n) continue;
        m[j] = read(a.mean, maps.mean, true, i);
        v[j] = read(a.square, maps.square, false, i);
        update(a.p[i], a.g[i], m[j], v[j], largest);
        a.g[i] = 0;
        if (a.p_narrow != nullptr) a.p_narrow[i] = narrow(a.p[i]);
      }
    }
    return largest;
  }
  UCAS_ON_DEVICE void update(float& p, float g, float& m, float& v, Largest& largest) const {
    const bool fine = update_element(a, p, g, m, v);
    const uint32_t mean = as_bits(m) & 0x7fffffffu, square = as_bits(v) & 0x7fffffffu;
    if (mean > largest.mean) largest.mean = mean;
    if (square > largest.square) largest.square = square;
    if (!fine) largest.fine = 0;
  }

  UCAS_ON_DEVICE void keep(int64_t block, int lane, const Maps& maps, const Numbers& kept,
                           const Largest& largest) const {
    if (block * kCodeBlock >= a.n) return;
    bool fine = largest.fine != 0;
    Scale of_mean{}, of_square{};
    if constexpr (kCodes) {
      of_mean = scale_of(largest.mean, a.mean.last);
      of_square = scale_of(largest.square, a.square.last);
      fine = fine && is_finite_float(of_mean.scale) && is_finite_float(of_square.scale);
      if (lane == 0) {
        a.mean.scales[block] = of_mean.scale;
        a.square.scales[block] = of_square.scale;
      }
    }
    UCAS_UNROLL
    for (int four = 0; four < kFours; ++four) {
      const int64_t at = place(block, lane, four);
      const int n = static_cast<int>(at >= a.n ? 0 : a.n - at < 4 ? a.n - at : 4);
      fine = write(a.mean, maps.mean, true, of_mean.inverse, at, n, kept.m + four * 4) && fine;
      fine = write(a.square, maps.square, false, of_square.inverse, at, n, kept.v + four * 4) && fine;
    }
    if (!fine) *a.spoilt = 1;
  }
  static UCAS_ON_DEVICE Scale scale_of(uint32_t largest, float last) {
    if (largest >= 0x7f800000u) return {as_float(0x7f800000u), 0};
    if (largest < 0x00800000u) return {0, 0};  // below the smallest normal number
    return {as_float(largest) / last, last / as_float(largest)};
  }

  static UCAS_ON_DEVICE float value_of(uint8_t code, const Map& map, bool sign, float scale) {
    if (sign && code >= 128) return -product(map.level[256 - code], scale);
    return product(map.level[code], scale);
  }
  static UCAS_ON_DEVICE float read(const PackedMoment& of, const Map& map, bool sign, int64_t i) {
    if constexpr (kCodes) return value_of(static_cast<uint8_t*>(of.values)[i], map, sign, of.scales[i / kCodeBlock]);
    return widen(static_cast<Bf16*>(of.values)[i]);
  }
  static UCAS_ON_DEVICE void read4(const PackedMoment& of, const Map& map, bool sign, int64_t at, float* to) {
    if constexpr (kCodes) {
      uint32_t codes;
      std::memcpy(&codes, static_cast<uint8_t*>(of.values) + at, 4);
      const float scale = of.scales[at / kCodeBlock];
      UCAS_UNROLL
      for (int j = 0; j < 4; ++j) to[j] = value_of(static_cast<uint8_t>(codes >> 8 * j), map, sign, scale);
    } else {
      const Floatx4 four = load4(static_cast<Bf16*>(of.values) + at);
      UCAS_UNROLL
      for (int j = 0; j < 4; ++j) to[j] = four.v[j];
    }
  }

  // Noise::bits of train/optimizer/moments.h, the lower half.
  static UCAS_ON_DEVICE uint32_t chance_of(const PackedMoment& of, int64_t i) {
    const auto low = static_cast<uint32_t>(i), high = static_cast<uint32_t>(i >> 32);
    uint32_t x = low ^ of.before ^ high * 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x21f0aaadu;
    x = (x ^ x >> 15) * 0xd35a2d97u;
    return (x ^ x >> 15 ^ of.after) & 0xffff;
  }
  // DynamicMap::encode of train/optimizer/dynamic_map.h, of one value.
  static UCAS_ON_DEVICE uint8_t code_of(float value, float inverse, const Map& map, bool sign, uint32_t chance) {
    const float x = product(as_float(as_bits(value) & 0x7fffffffu), inverse);
    uint32_t code = 0;  // of the last level that is not above x
    UCAS_UNROLL
    for (uint32_t step = kCodeLevels / 2; step > 0; step /= 2) code += map.level[code + step] <= x ? step : 0;
    const float part = product(x - map.level[code], map.gap[code]);
    code += product(part, 65536.0f) > static_cast<float>(chance) ? 1 : 0;
    if (!sign) return static_cast<uint8_t>(code == 0 && x > 0 ? 1 : code);
    return static_cast<uint8_t>((as_bits(value) >> 31) != 0 ? 0u - code : code);
  }
  // The first n of four.
  static UCAS_ON_DEVICE bool write(const PackedMoment& of, const Map& map, bool sign, float inverse, int64_t at, int n,
                                   const float* from) {
    constexpr uint32_t kNearest = 0x8000;
    uint16_t rounded[4] = {};
    bool fine = true;
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) {
      if (j >= n) continue;
      if constexpr (kCodes) {
        rounded[j] = code_of(from[j], inverse, map, sign, sign ? kNearest : chance_of(of, at + j));
      } else {
        rounded[j] = static_cast<uint16_t>((as_bits(from[j]) + chance_of(of, at + j)) >> 16);
        fine = fine && (rounded[j] & 0x7f80u) != 0x7f80u;
      }
    }
    if constexpr (kCodes) {
      auto* to = static_cast<uint8_t*>(of.values) + at;
      if (n == 4) {
        const uint32_t codes =
            rounded[0] | uint32_t{rounded[1]} << 8 | uint32_t{rounded[2]} << 16 | uint32_t{rounded[3]} << 24;
        *reinterpret_cast<uint32_t*>(to) = codes;
      }
      for (int j = 0; j < n && n < 4; ++j) to[j] = static_cast<uint8_t>(rounded[j]);
    } else {
      Bf16* to = static_cast<Bf16*>(of.values) + at;
      if (n == 4) store_whole(to, Bf16x4{{{rounded[0]}, {rounded[1]}, {rounded[2]}, {rounded[3]}}});
      for (int j = 0; j < n && n < 4; ++j) to[j] = {rounded[j]};
    }
    return fine;
  }
};

struct SumOfSquaresChunks {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 6;
  static constexpr const char* kName = "sum_of_squares";
  SumOfSquares a;

  Grid grid() const { return {(a.n + kSquaresChunk - 1) / kSquaresChunk}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const int64_t left = a.n - thread_block.x * kSquaresChunk;
    const int n = static_cast<int>(left < kSquaresChunk ? left : kSquaresChunk);
    const float* x = a.x + thread_block.x * kSquaresChunk;
    const double total = thread_block.sum([&](int lane) { return of_lane(x, n, lane); });
    thread_block.each([&](int lane) {
      if (lane == 0) a.part[thread_block.x] = total;
    });
  }

 private:
  // Four chains, one for each place in a four.
  static UCAS_ON_DEVICE double of_lane(const float* x, int n, int lane) {
    constexpr int kNext = kThreads * 4, kTogether = 8;
    double sum[4] = {0, 0, 0, 0};
    int i = lane * 4;
    for (; i + (kTogether - 1) * kNext + 4 <= n; i += kTogether * kNext) {
      Floatx4 four[kTogether];
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) four[k] = load4(x + i + k * kNext);
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) add_squares(four[k], sum);
    }
    for (; i + 4 <= n; i += kNext) add_squares(load4(x + i), sum);
    for (; i < n; ++i) sum[0] += static_cast<double>(x[i]) * x[i];  // the last three at most
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
  static UCAS_ON_DEVICE void add_squares(const Floatx4& x, double (&sum)[4]) {
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) sum[j] += static_cast<double>(x.v[j]) * x.v[j];
  }
};

}  // namespace ucas::gpu

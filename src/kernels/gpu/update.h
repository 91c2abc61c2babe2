// Kernels of the optimizer's loops over elements; arguments and equations: kernels/gpu/kernels.h.
#pragma once

#include "kernels/gpu/kernels.h"
#include "kernels/gpu/rows.h"

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
      if (!fine) *a.nonfinite = 1;  // every lane that writes, writes this
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
    return fine;
  }
  UCAS_ON_DEVICE bool update_one(int64_t i) const {
    const bool fine = update_element(a, a.p[i], a.g[i], a.m[i], a.v[i]);
    a.g[i] = 0;
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

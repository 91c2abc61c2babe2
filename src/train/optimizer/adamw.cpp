#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <vector>

#include "model/backend/gpu/gpu_block.h"
#include "model/tensor/parallel.h"
#include "train/optimizer/update_rules.h"

namespace ucas {

namespace {

struct Coefficients {
  float clip;  // gradients are multiplied by this first
  float keep;  // 1 - lr wd
  float beta1, beta2;
  float step_size;        // lr / (1 - beta1^t)
  float root_correction;  // sqrt(1 - beta2^t)
  float eps;
};

Coefficients coefficients_of(const ParameterUpdate& u) {
  const OptimizerConfig& config = u.config;
  const auto t = static_cast<double>(u.steps);
  return {.clip = static_cast<float>(u.clip),
          .keep = static_cast<float>(1 - u.lr * u.decay),
          .beta1 = static_cast<float>(config.beta1),
          .beta2 = static_cast<float>(config.beta2),
          .step_size = static_cast<float>(u.lr / (1 - std::pow(config.beta1, t))),
          .root_correction = static_cast<float>(std::sqrt(1 - std::pow(config.beta2, t))),
          .eps = static_cast<float>(config.eps)};
}

// p <- p keep; m <- m + (g - m)(1 - b1); v <- b2 v + (1 - b2) g^2; p <- p - step_size m / (sqrt v / root + eps).
// IEEE operations only, element by element: bit-identical however the loop is cut or vectorised. Zeroes the gradient.
// False if any result is not finite, or a second moment is negative.
bool update_elements(float* __restrict p, float* __restrict g, float* __restrict m, float* __restrict v, int64_t n,
                     const Coefficients& c) {
  const Coefficients k = c;
  // An exponent of all ones overflows into the sign's place. A mean that is not finite, and a square below 0, show in
  // the parameter; an infinite square does not.
  constexpr uint32_t kMagnitude = 0x7fffffff, kLowestExponent = 0x00800000, kSign = 0x80000000;
  uint32_t nonfinite = 0;
#pragma omp simd reduction(| : nonfinite)
  for (int64_t i = 0; i < n; ++i) {
    float gradient = g[i] * k.clip;
    m[i] = k.beta1 * m[i] + (1 - k.beta1) * gradient;
    v[i] = k.beta2 * v[i] + (1 - k.beta2) * gradient * gradient;
    p[i] = p[i] * k.keep - k.step_size * (m[i] / (std::sqrt(v[i]) / k.root_correction + k.eps));
    g[i] = 0;
    nonfinite |= ((std::bit_cast<uint32_t>(p[i]) & kMagnitude) + kLowestExponent) |
                 ((std::bit_cast<uint32_t>(v[i]) & kMagnitude) + kLowestExponent);
  }
  return (nonfinite & kSign) == 0;
}

// Reads, updates and writes back moments that are not f32, a block at a time, so that they stay in the cache.
bool update_packed(const ParameterState& slot, int64_t first, int64_t last, float* p, float* g, const Coefficients& c,
                   const Noise& of_mean, const Noise& of_square) {
  float m[kQuantBlock], v[kQuantBlock];
  for (int64_t at = first; at < last; at += kQuantBlock) {
    const int64_t n = std::min(kQuantBlock, last - at);
    read_part(slot.mean, at, n, m);
    read_part(slot.square, at, n, v);
    if (!update_elements(p + at, g + at, m, v, n, c)) return false;
    const bool kept = write_part(slot.mean, at, n, m, of_mean) && write_part(slot.square, at, n, v, of_square);
    if (!kept) return false;
  }
  return true;
}

}  // namespace

bool adamw_on_cpu(const ParameterState& slot, const ParameterUpdate& u) {
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (!gradient.is_contiguous()) gradient = gradient.contiguous();
  const Coefficients c = coefficients_of(u);
  float *p = slot.parameter.mutable_data_ptr<float>(), *g = gradient.mutable_data_ptr<float>();
  const bool plain = slot.mean.is_f32();
  float* m = plain ? slot.mean.values.mutable_data_ptr<float>() : nullptr;
  float* v = plain ? slot.square.values.mutable_data_ptr<float>() : nullptr;
  const Noise of_mean = Noise::of(slot.index, u.steps, 0, slot.first),
              of_square = Noise::of(slot.index, u.steps, 1, slot.first);
  const int64_t n = slot.parameter.numel(), chunks = (n + kMomentChunk - 1) / kMomentChunk;
  std::atomic<bool> fine = true;
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kMomentChunk, last = std::min(n, end * kMomentChunk);
    const bool whole = plain ? update_elements(p + first, g + first, m + first, v + first, last - first, c)
                             : update_packed(slot, first, last, p, g, c, of_mean, of_square);
    if (!whole) fine = false;
  });
  return fine;
}

bool adamw_on_gpu(const ParameterState& slot, const ParameterUpdate& u) {
  // The kernel reads fours; a parameter of f32 may be rows of a wider matrix that begin between them.
  const bool fours = reinterpret_cast<uintptr_t>(slot.parameter.const_data_ptr()) % 16 == 0;
  if (!slot.mean.is_f32() || !fours) return adamw_by_aten(slot, u);
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (!gradient.is_contiguous()) gradient = gradient.contiguous();
  const Coefficients c = coefficients_of(u);
  const Kernels kernels = kernels_of(slot.parameter.device());
  kernels.table.adamw(kernels.stream(), {.n = slot.parameter.numel(),
                                         .clip = c.clip,
                                         .keep = c.keep,
                                         .beta1 = c.beta1,
                                         .beta2 = c.beta2,
                                         .step_size = c.step_size,
                                         .root_correction = c.root_correction,
                                         .eps = c.eps,
                                         .p = slot.parameter.mutable_data_ptr<float>(),
                                         .g = gradient.mutable_data_ptr<float>(),
                                         .m = slot.mean.values.mutable_data_ptr<float>(),
                                         .v = slot.square.values.mutable_data_ptr<float>(),
                                         .nonfinite = u.nonfinite});
  return true;
}

bool adamw_by_aten(const ParameterState& slot, const ParameterUpdate& u) {
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (!gradient.is_contiguous()) gradient = gradient.contiguous();
  gradient.mul_(u.clip);
  const at::Tensor flat_p = slot.parameter.detach().view({-1}), flat_g = gradient.view({-1});
  // torch's kernel counts steps in a tensor that it expects to be advanced already.
  std::vector<at::Tensor> count{at::zeros_like(flat_g.narrow(0, 0, 1)).fill_(static_cast<double>(u.steps)).squeeze()};
  const int64_t n = flat_p.numel(), slice = slot.mean.is_f32() ? n : kMomentSlice;
  bool fine = true;
  for (int64_t first = 0; first < n; first += slice) {
    const int64_t size = std::min(slice, n - first);
    std::vector<at::Tensor> p{flat_p.narrow(0, first, size)}, g{flat_g.narrow(0, first, size)};
    std::vector<at::Tensor> m{read_part(slot.mean, first, size)}, v{read_part(slot.square, first, size)};
    at::_fused_adamw_(p, g, m, v, {}, count, u.lr, u.config.beta1, u.config.beta2, u.decay, u.config.eps, false, false);
    fine = fine && all_finite(p[0]) && all_finite(m[0]) && all_finite(v[0]);
    if (slot.mean.is_f32()) break;
    write_part(slot.mean, first, m[0], Noise::of(slot.index, u.steps, 0, slot.first));
    write_part(slot.square, first, v[0], Noise::of(slot.index, u.steps, 1, slot.first));
  }
  gradient.zero_();
  return fine;
}

}  // namespace ucas

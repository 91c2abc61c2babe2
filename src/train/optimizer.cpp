#include "train/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr int64_t kUpdateChunk = 16384;  // elements of one partial sum, and of one task of the update

// Sum of squares in a fixed order: eight lanes inside a chunk, chunks one after another, all in double.
double sum_of_squares(const float* g, int64_t n) {
  int64_t chunks = (n + kUpdateChunk - 1) / kUpdateChunk;
  std::vector<double> partial(chunks);
  at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const float* x = g + c * kUpdateChunk;
      int64_t size = std::min(kUpdateChunk, n - c * kUpdateChunk), whole = size / 8 * 8;
      double lane[8] = {};
      for (int64_t i = 0; i < whole; i += 8) {
        for (int j = 0; j < 8; ++j) lane[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
      }
      for (int64_t i = whole; i < size; ++i) lane[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      partial[c] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
  });
  double sum = 0;
  for (double p : partial) sum += p;
  return sum;
}

struct Coefficients {
  float clip;  // gradients are multiplied by this first
  float keep;  // 1 - lr wd
  float beta1, beta2;
  float step_size;        // lr / (1 - beta1^t)
  float root_correction;  // sqrt(1 - beta2^t)
  float eps;
};

// p <- p keep; m <- m + (g - m)(1 - b1); v <- b2 v + (1 - b2) g^2; p <- p - step_size m / (sqrt v / root + eps).
// IEEE operations only, element by element: the same bits however the loop is cut or vectorised. Zeroes the gradient.
// False if any result is not finite, or a second moment is negative.
bool update_elements(float* __restrict p, float* __restrict g, float* __restrict m, float* __restrict v, int64_t n,
                     const Coefficients& c) {
  const Coefficients k = c;
  // An exponent of all ones overflows into the sign's place. A mean that is not finite, and a square below 0, show in
  // the parameter; an infinite square does not.
  constexpr uint32_t kMagnitude = 0x7fffffff, kLowestExponent = 0x00800000, kSign = 0x80000000;
  uint32_t spoilt = 0;
#pragma omp simd reduction(| : spoilt)
  for (int64_t i = 0; i < n; ++i) {
    float gradient = g[i] * k.clip;
    m[i] = k.beta1 * m[i] + (1 - k.beta1) * gradient;
    v[i] = k.beta2 * v[i] + (1 - k.beta2) * gradient * gradient;
    p[i] = p[i] * k.keep - k.step_size * (m[i] / (std::sqrt(v[i]) / k.root_correction + k.eps));
    g[i] = 0;
    spoilt |= ((std::bit_cast<uint32_t>(p[i]) & kMagnitude) + kLowestExponent) |
              ((std::bit_cast<uint32_t>(v[i]) & kMagnitude) + kLowestExponent);
  }
  return (spoilt & kSign) == 0;
}

[[noreturn]] void refuse_result(const std::string& name, int64_t update, double lr) {
  throw Error("numeric",
              str("update ", update, " (learning rate ", lr, ") left ", name,
                  " or its moments with values that are not finite; lower the learning rate, or look at the data. "
                  "Nothing of it is saved: the last checkpoint stands"),
              kNumeric);
}

double cpu_sum_of_squares(const at::Tensor& gradient) {
  at::Tensor flat = gradient.contiguous();
  return sum_of_squares(flat.const_data_ptr<float>(), flat.numel());
}

bool cpu_update(const AdamW::Slot& slot, const AdamW::Update& u) {
  at::Tensor& g = slot.parameter.mutable_grad();
  if (!g.is_contiguous()) g = g.contiguous();
  const OptimizerConfig& config = u.config;
  const auto t = static_cast<double>(u.steps);
  const Coefficients c{.clip = static_cast<float>(u.clip),
                       .keep = static_cast<float>(1 - u.lr * u.decay),
                       .beta1 = static_cast<float>(config.beta1),
                       .beta2 = static_cast<float>(config.beta2),
                       .step_size = static_cast<float>(u.lr / (1 - std::pow(config.beta1, t))),
                       .root_correction = static_cast<float>(std::sqrt(1 - std::pow(config.beta2, t))),
                       .eps = static_cast<float>(config.eps)};
  float *p = slot.parameter.mutable_data_ptr<float>(), *gp = g.mutable_data_ptr<float>();
  float *m = slot.exp_avg.mutable_data_ptr<float>(), *v = slot.exp_avg_sq.mutable_data_ptr<float>();
  std::atomic<bool> fine = true;
  at::parallel_for(0, slot.parameter.numel(), kUpdateChunk, [&](int64_t first, int64_t last) {
    if (!update_elements(p + first, gp + first, m + first, v + first, last - first, c)) fine = false;
  });
  return fine;
}

double aten_sum_of_squares(const at::Tensor& gradient) {
  double norm = at::linalg_vector_norm(gradient, 2, {}, false, at::kDouble).item<double>();
  return norm * norm;
}

// A norm is not finite if any value is not.
bool all_finite(const at::Tensor& values) {
  return std::isfinite(at::linalg_vector_norm(values, 1, {}, false, at::kDouble).item<double>());
}

bool aten_update(const AdamW::Slot& slot, const AdamW::Update& u) {
  at::Tensor& g = slot.parameter.mutable_grad();
  g.mul_(u.clip);
  // torch's kernel counts steps in a tensor that it expects to be advanced already.
  auto t = static_cast<double>(u.steps);
  std::vector<at::Tensor> count{at::zeros_like(g.view({-1}).narrow(0, 0, 1)).fill_(t).squeeze()};
  std::vector<at::Tensor> p{slot.parameter}, gs{g}, m{slot.exp_avg}, v{slot.exp_avg_sq};
  at::_fused_adamw_(p, gs, m, v, {}, count, u.lr, u.config.beta1, u.config.beta2, u.decay, u.config.eps, false, false);
  g.zero_();
  return all_finite(slot.parameter) && all_finite(slot.exp_avg_sq);
}

const AdamW::Device kCpuUpdate{cpu_sum_of_squares, cpu_update}, kAtenUpdate{aten_sum_of_squares, aten_update};

}  // namespace

AdamW::AdamW(std::vector<NamedTensor> parameters, const OptimizerConfig& config) : config_(config) {
  at::NoGradGuard no_grad;
  bool on_cpu = true;
  for (NamedTensor& p : parameters) {
    UCAS_CHECK(p.tensor.scalar_type() == at::kFloat && p.tensor.is_contiguous(), "master weights are contiguous f32");
    bool decays = config.decay == Decay::all || p.tensor.dim() >= 2;
    slots_.push_back({p.name, p.tensor, at::zeros_like(p.tensor), at::zeros_like(p.tensor), decays});
    on_cpu = on_cpu && p.tensor.is_cpu();
  }
  device_ = on_cpu ? &kCpuUpdate : &kAtenUpdate;
}

double AdamW::grad_norm() const {
  double sum = 0;
  for (const Slot& slot : slots_) {
    if (slot.parameter.grad().defined()) sum += device_->sum_of_squares(slot.parameter.grad());
  }
  return std::sqrt(sum);
}

StepResult AdamW::step(double lr) {
  at::NoGradGuard no_grad;
  StepResult result{grad_norm(), false};
  if (!std::isfinite(result.grad_norm)) {
    zero_grad();
    return result;
  }
  result.applied = true;
  ++steps_;
  double clip = config_.grad_clip > 0 ? std::min(1.0, config_.grad_clip / (result.grad_norm + 1e-6)) : 1.0;
  for (Slot& slot : slots_) {
    if (!slot.parameter.grad().defined()) continue;
    double decay = slot.decays ? config_.weight_decay : 0;
    if (!device_->update(slot, {config_, steps_, lr, clip, decay})) refuse_result(slot.name, steps_, lr);
  }
  return result;
}

void AdamW::zero_grad() {
  at::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    at::Tensor& g = slot.parameter.mutable_grad();
    if (g.defined()) g.zero_();
  }
}

std::vector<NamedTensor> AdamW::state() const {
  std::vector<NamedTensor> tensors;
  for (const Slot& slot : slots_) {
    tensors.push_back({"exp_avg/" + slot.name, slot.exp_avg});
    tensors.push_back({"exp_avg_sq/" + slot.name, slot.exp_avg_sq});
  }
  return tensors;
}

}  // namespace ucas

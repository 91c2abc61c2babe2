#include "model/limits.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "model/gemm/gemm.h"
#include "model/tensor/stream.h"

namespace ucas {

double seconds_of(at::Device device, const std::function<void()>& work) {
  work();
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) {
    wait_for(device);
    const auto began = std::chrono::steady_clock::now();
    work();
    wait_for(device);
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

Limits measure_limits(at::Device device) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions().device(device);
  const at::Tensor from = at::randn({int64_t{1} << 26}, options), to = at::empty_like(from);
  const double copied = 8.0 * static_cast<double>(from.numel());
  const double of_copy = seconds_of(device, [&] { to.copy_(from); });
  constexpr int64_t kSize = 8192;
  const at::Tensor a = at::randn({kSize, kSize}, options).to(at::kBFloat16), b = at::randn_like(a);
  at::Tensor out = at::empty_like(a);
  const double of_gemm = seconds_of(device, [&] { at::mm_out(out, a, b.t()); });
  return {copied / of_copy, 2 * std::pow(static_cast<double>(kSize), 3) / of_gemm};
}

Limits measure_limits(Model& model) {
  const at::Device device = model.device();
  if (!device.is_cpu()) return measure_limits(device);
  const at::NoGradGuard no_grad;
  constexpr int64_t kRows = 256, kInputs = 1024, kOutputs = 1024;
  constexpr double kCached = 256e6;  // bytes that a cache might hold
  const at::ScalarType type = model.options().dtype == Dtype::bf16 ? at::kBFloat16 : at::kFloat;
  const at::Tensor x = at::ones({kRows, kInputs}, type), w = at::ones({kOutputs, kInputs}, type);
  const at::Tensor out = at::empty({kRows, kOutputs}, at::kFloat);
  Limits limits;
  limits.operations = 2.0 * kRows * kInputs * kOutputs / seconds_of(device, [&] { gemm(x, w, out); });
  const at::Tensor& read = model.head().weight().compute;
  const double bytes = static_cast<double>(read.numel()) * static_cast<double>(read.element_size());
  if (bytes > kCached) limits.bandwidth = bytes / seconds_of(device, [&] { at::sum(read, at::kFloat); });
  return limits;
}

}  // namespace ucas

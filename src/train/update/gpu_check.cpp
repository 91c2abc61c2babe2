#include "train/update/gpu_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "model/forward.h"
#include "model/tensor/stream.h"
#include "model/transformer.h"
#include "train/optimizer/optimizer.h"

namespace ucas {

namespace {

constexpr std::string_view kWhole[] = {"forward", "backward", "decoding", "update"};
constexpr double kOfUpdate = 1e-4;  // of the largest change, which f32 weights round

// The changes of all parameters, side by side.
std::vector<at::Tensor> changes_by_updates(Model& model, double& norm) {
  Optimizer optimizer(model.trainable(), {.lr = 0.01});
  std::vector<at::Tensor> changes;
  const at::NoGradGuard no_grad;
  for (const NamedTensor& p : model.trainable()) changes.push_back(p.tensor.detach().clone());
  for (uint64_t update = 0; update < 2; ++update) {
    uint64_t stream = 100 * update;
    for (const NamedTensor& p : model.trainable()) {
      Rng rng(8, stream++);
      const at::Tensor host = at::empty(p.tensor.sizes(), at::kFloat);
      for (int64_t i = 0; i < host.numel(); ++i) host.data_ptr<float>()[i] = static_cast<float>(rng.normal());
      p.tensor.mutable_grad() = host.to(p.tensor.device());
    }
    norm = optimizer.step(0.01).grad_norm;
  }
  size_t i = 0;
  for (const NamedTensor& p : model.trainable()) {
    changes[i] = (p.tensor.detach() - changes[i]).cpu();
    ++i;
    p.tensor.mutable_grad().reset();
  }
  model.refresh();
  return changes;
}

void add_update_speed(Model& model, const Limits& limits, GpuFinding& finding) {
  Optimizer optimizer(model.trainable(), {});
  double elements = 0;
  for (const NamedTensor& p : model.trainable()) {
    p.tensor.mutable_grad() = at::empty_like(p.tensor.detach()).fill_(1e-3);
    elements += static_cast<double>(p.tensor.numel());
  }
  const double seconds = seconds_of(model.device(), [&] { optimizer.step(1e-6); });
  finding.share = elements * 36 / seconds / limits.bandwidth;  // p, g, m, v in and out, g once more for its norm
  finding.limit = "copy";
}

}  // namespace

GpuFinding check_update(Model& reference, Model& tested) {
  double want_norm = 0, got_norm = 0;
  const std::vector<at::Tensor> want = changes_by_updates(reference, want_norm);
  const std::vector<at::Tensor> got = changes_by_updates(tested, got_norm);
  GpuFinding finding{"update", std::abs(got_norm - want_norm) / want_norm, kOfUpdate};
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = difference_of(got[i], want[i]);
    if (!(difference <= finding.difference)) finding.difference = difference;
  }
  return finding;
}

std::vector<GpuFinding> check_gpu(at::Device device, bool with_speed, GpuShapes shapes, const ModelConfig* own) {
  if (!has_kernels(device)) {
    throw Error(ErrorKind::device, str("no kernels for ", device.str(),
                                       ": a build without nvcc, or UCAS_GPU_KERNELS=off; there is nothing to check"));
  }
  const c10::DeviceGuard guard(device);
  std::vector<GpuFinding> findings = check_kernels(kernels_of(at::kCPU), kernels_of(device), shapes, own);
  const auto here = models_to_check(at::kCPU, shapes, own), there = models_to_check(device, shapes, own);
  std::vector<GpuFinding> of_models;
  for (size_t i = 0; i < here.size(); ++i) {
    std::vector<GpuFinding> of_model = check_model(*emulated_view(*here[i]), *there[i]);
    of_model.push_back(check_update(*here[i], *there[i]));
    keep_worse(of_models, of_model);
  }
  findings.insert(findings.end(), of_models.begin(), of_models.end());
  if (!with_speed) return findings;
  try {
    const Limits limits = measure_limits(device);
    add_kernel_speed(device, limits, findings);
    const auto large = large_model(device);
    add_model_speed(*large, limits, findings);
    add_update_speed(*large, limits, findings.back());
  } catch (const c10::OutOfMemoryError&) {  // of a small device, or of one that others use
  }
  return findings;
}

void require_sound_gpu(const Model& model) {
  const at::Device device = model.device();
  if (device.is_cpu() || !computes_by_hand(model.config(), device, model.options())) return;
  for (const GpuFinding& f : check_gpu(device, false, GpuShapes::few, &model.config())) {
    if (f.ok()) continue;
    const bool whole = std::ranges::find(kWhole, f.what) != std::end(kWhole);
    throw Error(ErrorKind::device,
                str(whole ? "the model's " : "kernel ", f.what, " differs from the CPU by ", f.difference, " (bound ",
                    f.bound, ") on ", device.str(),
                    "; set UCAS_GPU_KERNELS=off to train by LibTorch's own operations, and please report it"),
                kNumeric);
  }
}

}  // namespace ucas

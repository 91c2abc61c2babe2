#include "model/transformer.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <mutex>

#include "base/str.h"
#include "base/terminal/log.h"
#include "hf/model_config.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/tensor/autograd.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

// Said once: nothing else shows that a setting takes the slow path.
void warn_of_slow_path(const ModelConfig& config, const ModelOptions& options, at::Device device) {
  static std::once_flag said;
  std::call_once(said, [&] { warn(slow_path(config, options, device.str())); });
}

// What runs where is decided here, and nowhere else.
Model::Parts parts_of(const ModelConfig& config, const Weights& weights, const ModelOptions& options) {
  const at::Device device = weights.norm.device();
  if (device.is_cpu()) return {make_native_forward(config, weights, options), make_native_head(weights.head)};
  if (computes_by_hand(config, device, options))
    return {make_gpu_forward(config, weights, options), make_gpu_head(weights.head)};
  warn_of_slow_path(config, options, device);
  return {make_aten_forward(config, weights, options), make_aten_head(weights.head)};
}

}  // namespace

bool computes_by_hand(const ModelConfig& config, at::Device device, const ModelOptions& options) {
  return device.is_cpu() || (has_kernels(device) && suits_kernels(config, options));
}

std::string slow_path(const ModelConfig& config, const ModelOptions& options, const std::string& device) {
  const std::string why = unsuited_for_kernels(config, options);
  return str(config.family->title, " on ", device,
             ": LibTorch's operations and autograd run instead of the GPU kernels (",
             why.empty() ? "UCAS_GPU_KERNELS=off, no nvcc when it was built, or none of its kernels runs there" : why,
             "): each sampled token costs ", human_bytes(4.0 * static_cast<double>(config.vocab_size)),
             " of logits copied to the host and a wait for it, and a training keeps what autograd keeps");
}

std::unique_ptr<Model> make_transformer(const ModelConfig& config, Weights weights, const ModelOptions& options) {
  weights.refresh();
  return std::make_unique<Model>(config, std::move(weights), options, parts_of);
}

bool wants_gradient(const Weights& weights) {
  auto trained = [](const NamedTensor& p) { return p.tensor.requires_grad(); };
  return c10::GradMode::is_enabled() &&
         (std::ranges::any_of(weights.parameters, trained) || std::ranges::any_of(weights.adapter, trained));
}

at::Tensor tied_to_parameters(const Weights& weights, const at::Tensor& hidden,
                              std::function<void(const at::Tensor& d_hidden)> backward) {
  std::vector<at::Tensor> parameters;
  for (const auto* list : {&weights.parameters, &weights.adapter}) {
    for (const NamedTensor& p : *list) parameters.push_back(p.tensor);
  }
  return differentiable(
      parameters, {hidden},
      [count = parameters.size(), backward = std::move(backward)](const std::vector<at::Tensor>& gradients) {
        backward(gradients[0]);
        return std::vector<at::Tensor>(count);  // it has added them itself
      })[0];
}

}  // namespace ucas

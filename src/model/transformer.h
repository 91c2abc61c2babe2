// Which back end a model runs on, for every family of hf/families.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "model/decoder.h"
#include "model/model.h"
#include "model/weights.h"
#include "rollout/sampling/kv_budget.h"

namespace ucas {

// Whether passes read bf16 copies of matrices and add gradients by hand, as all back ends but ATen's do.
bool computes_by_hand(const ModelConfig& config, at::Device device, const ModelOptions& options);

// Makes what GEMMs read of the parameters first.
std::unique_ptr<Model> make_transformer(const ModelConfig& config, Weights weights, const ModelOptions& options = {});
// The warning where a CUDA device does not run the GPU kernels: why, and what that costs.
std::string slow_path(const ModelConfig& config, const ModelOptions& options, const std::string& device);

// Where a model runs: one implementation of these for each kind of device, chosen once, when the model is made.
// All follow the diagram of model/backend/block.h. Arguments are checked and counted by the caller (model/model.cpp).

class Forward {
 public:
  virtual ~Forward() = default;
  // As in Model. `hidden` is differentiable when gradients are on; the others run without.
  virtual at::Tensor hidden(const Packed& packed) = 0;
  virtual bool shares_prefixes() const { return false; }
  virtual bool backward_by_hand() const { return true; }  // calls Weights::watch for its blocks
  virtual std::unique_ptr<KvCache> make_cache(const KvBudget& room) = 0;
  virtual at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) = 0;
  virtual at::Tensor decode(std::span<const int32_t> /*token*/, std::span<const int32_t> /*position*/,
                            std::span<const int64_t> /*slot*/, KvCache& /*cache*/) {
    UCAS_CHECK(false, "this forward decodes by its own decoder");
    return {};
  }
  // Its own, if it has one; else nullptr, and decode() serves.
  virtual std::unique_ptr<Decoder> make_decoder(Head& /*head*/, KvCache& /*cache*/, const SamplingConfig& /*of*/) {
    return nullptr;
  }
};

// For forwards with a backward by hand, which accumulates the parameters' gradients in place. Whether there will be
// one; then `hidden`, which was computed without gradients, tied to all parameters through it.
bool wants_gradient(const Weights& weights);
at::Tensor tied_to_parameters(const Weights& weights, const at::Tensor& hidden,
                              std::function<void(const at::Tensor& d_hidden)> backward);

// CPU: own kernels and row-stable GEMMs. Both keep references to config and weights.
std::unique_ptr<Forward> make_native_forward(const ModelConfig& config, const Weights& weights,
                                             const ModelOptions& options);
// A CUDA device by own kernels, in bf16, or their CPU emulation; for models that suit them (hf/model_config.h).
std::unique_ptr<Forward> make_gpu_forward(const ModelConfig& config, const Weights& weights,
                                          const ModelOptions& options);
// Any device: ATen operations and autograd; what the native one is checked against.
std::unique_ptr<Forward> make_aten_forward(const ModelConfig& config, const Weights& weights,
                                           const ModelOptions& options);

}  // namespace ucas

// The forward pass on a device with kernels of its own (gpu_block.h). Training keeps what gpu_backward.cpp needs;
// prefill and decoding leave keys and values in blocks of a cache (gpu_cache.h).
#include "model/backend/gpu/gpu_forward.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "model/transformer.h"

namespace ucas {

GpuForward::GpuForward(const ModelConfig& config, const Weights& weights, const ModelOptions& options)
    : config_(config),
      shape_{config_},
      weights_(weights),
      recompute_(options.recompute),
      kernels_(kernels_of(weights.norm.device())),
      rope_(config_, weights.norm.device()) {}

at::Tensor GpuForward::run(const GpuRows& rows, const GpuStore& store, GpuCache* cache, GpuSavedForBackward* saved) {
  rope_.reach(rows.longest);
  const GpuBlock block(shape_, kernels_, rope_, rows.position);
  at::Tensor x = block.embed(rows.token, weights_.embed.compute), y;
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const Layer& layer = weights_.layers[l];
    Activations a;
    at::Tensor h = block.bf16(shape_.D);
    a.x = saved != nullptr && y.defined() ? block.f32(shape_.D) : x;
    block.add_norm(x, y, layer.input_norm, y.defined() ? a.x : at::Tensor(), h);
    GpuStore of_layer = store;
    if (cache != nullptr) of_layer.cache = cache->layer(static_cast<int64_t>(l));
    gpu_attention(block, layer, rows, h, a, of_layer);
    y = gpu_mlp(block, layer, a, true);
    x = a.middle;
    if (saved != nullptr) saved->blocks.push_back(saved_for_backward(a, saved->recompute));
  }
  const at::Tensor hidden = block.f32(shape_.D), last = saved != nullptr ? block.f32(shape_.D) : x;
  block.add_norm(x, y, weights_.norm, last, hidden);
  if (saved != nullptr) saved->last = last;
  return hidden.narrow(0, 0, rows.rows);
}

at::Tensor GpuForward::hidden(const Packed& packed) {
  auto saved = std::make_shared<GpuSavedForBackward>(packed, kernels_.device);
  saved->recompute = recompute_;
  const bool wants = wants_gradient(weights_);
  at::Tensor out;
  {
    const c10::NoGradGuard no_grad;
    out = run(saved->rows, {}, nullptr, wants ? saved.get() : nullptr);
  }
  if (!wants) return out;
  return tied_to_parameters(weights_, out, [this, saved](const at::Tensor& d_hidden) {
    gpu_backward(shape_, kernels_, weights_, rope_, *saved, d_hidden);
  });
}

std::unique_ptr<KvCache> GpuForward::make_cache(const KvBudget& room) {
  return std::make_unique<GpuCache>(shape_, room.slots + room.prompt_slots, room.length, room.tokens, kernels_.device);
}

at::Tensor GpuForward::prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) {
  auto& blocks = static_cast<GpuCache&>(cache);
  const GpuRows rows(packed, kernels_.device);
  std::vector<int32_t> slot;
  for (size_t s = 0; s < slots.size(); ++s) {
    const int64_t count = packed.begin[s + 1] - packed.begin[s];
    blocks.release(slots[s]);
    UCAS_CHECK(blocks.reserve(slots[s], count), "the KV cache must have room before a prefill");
    slot.insert(slot.end(), count, static_cast<int32_t>(slots[s]));
  }
  slot.resize(rows.padded, static_cast<int32_t>(blocks.spare_slot()));
  blocks.upload();
  const at::Tensor of_row = on_device(slot, kernels_.device);
  return run(rows, {.slot = of_row.const_data_ptr<int32_t>()}, &blocks, nullptr);
}

// Every row is the next token of its slot. Nothing here waits for the device, so it can be recorded.
at::Tensor GpuForward::decode_rows(const DecodeRows& rows, GpuCache& cache) {
  const BlockShape& s = shape_;
  const GpuBlock block(s, kernels_, rope_, rows.position);
  const int64_t P = rows.token.size(0);
  at::Tensor x = block.embed(rows.token, weights_.embed.compute), y;
  const at::Tensor part = at::empty({P, rows.most_blocks, s.query}, x.options());
  const at::Tensor part_norm = at::empty({P, rows.most_blocks, s.H, 2}, x.options());
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const Layer& layer = weights_.layers[l];
    const at::Tensor h = block.bf16(s.D);
    block.add_norm(x, y, layer.input_norm, y.defined() ? x : at::Tensor(), h);
    Activations a;
    a.x = x;
    const gpu::Cache of_layer = cache.layer(static_cast<int64_t>(l));
    block.project(layer, h, a, {rows.slot.const_data_ptr<int32_t>(), of_layer});
    a.attended = block.bf16(s.query);
    kernels_.table.attend_decode(kernels_.stream(), {.rows = P,
                                                     .H = s.H,
                                                     .K = s.K,
                                                     .d = s.d,
                                                     .window = layer.window,
                                                     .most_blocks = rows.most_blocks,
                                                     .scale = 1 / std::sqrt(static_cast<float>(s.d)),
                                                     .q = data<Bf16>(a.qkv),
                                                     .q_stride = s.N,
                                                     .slot = rows.slot.const_data_ptr<int32_t>(),
                                                     .position = rows.position.const_data_ptr<int32_t>(),
                                                     .cache = of_layer,
                                                     .part = part.data_ptr<float>(),
                                                     .part_norm = part_norm.data_ptr<float>(),
                                                     .out = data<Bf16>(a.attended)});
    y = gpu_mlp(block, layer, a, true);
    x = a.middle;
  }
  const at::Tensor hidden = block.f32(s.D);
  block.add_norm(x, y, weights_.norm, x, hidden);
  return hidden;
}

std::unique_ptr<Forward> make_gpu_forward(const ModelConfig& config, const Weights& weights,
                                          const ModelOptions& options) {
  return std::make_unique<GpuForward>(config, weights, options);
}

}  // namespace ucas

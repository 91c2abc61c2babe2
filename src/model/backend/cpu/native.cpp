// The forward pass on the CPU: own row kernels (kernels/kernels.h) around GEMMs whose rows do not depend on each other
// (model/gemm/gemm.h), so a row is bit-identical in any batch. Decoding, prefill and training run the same code; only
// the address of keys and values differs, and whether activations are saved for backward.
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"
#include "model/backend/block.h"
#include "model/backend/cpu/tiled_cache.h"
#include "model/transformer.h"

namespace ucas {

namespace {

// Keys and values of a layer: a cache's, or one scratch layer that every layer overwrites in turn.
template <class E>
struct Stage {
  const TiledCache<E>* cache = nullptr;
  E *scratch_key = nullptr, *scratch_value = nullptr;
  std::span<const SharedPrefix> shared = {};
  E* key(int64_t layer) const { return cache != nullptr ? cache->key(layer) : scratch_key; }
  E* value(int64_t layer) const { return cache != nullptr ? cache->value(layer) : scratch_value; }
};

template <class E>
class NativeForward final : public Forward {
 public:
  NativeForward(const ModelConfig& config, const Weights& weights, Recompute recompute)
      : shape_{config}, weights_(weights), rope_(config), recompute_(recompute) {}

  at::Tensor hidden(const Packed& packed) override;
  bool shares_prefixes() const override { return true; }
  std::unique_ptr<KvCache> make_cache(const KvBudget& room) override {
    return std::make_unique<TiledCache<E>>(shape_, room);
  }
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) override {
    auto& tiled = static_cast<TiledCache<E>&>(cache);
    std::vector<KvAddress> addresses;
    for (size_t s = 0; s < slots.size(); ++s) {
      const int64_t tokens = packed.begin[s + 1] - packed.begin[s];
      tiled.begin(slots[s], tokens);
      for (int64_t i = 0; i < tokens; ++i) addresses.push_back(tiled.address(slots[s], i));
    }
    return run(packed.token, addresses, {&tiled}, nullptr);
  }
  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache) override {
    auto& tiled = static_cast<TiledCache<E>&>(cache);
    std::vector<KvAddress> addresses;
    for (size_t i = 0; i < token.size(); ++i) addresses.push_back(tiled.address(slot[i], position[i]));
    return run(token, addresses, {&tiled}, nullptr);
  }

 private:
  at::Tensor run(std::span<const int32_t> token, std::span<const KvAddress> addresses, const Stage<E>& stage,
                 SavedForBackward* saved);
  at::Tensor embed(std::span<const int32_t> token, int64_t P) const;

  const BlockShape shape_;
  const Weights& weights_;
  RopeTables rope_;
  const Recompute recompute_;
};

template <class E>
at::Tensor NativeForward<E>::embed(std::span<const int32_t> token, int64_t P) const {
  const auto rows = static_cast<int64_t>(token.size()), D = shape_.D;
  at::Tensor x = rows_of(P, D);
  clear_padding<float>(x, rows);
  E* from = data<E>(weights_.embed.compute);
  float* to = data(x);
  const float scale = shape_.embedding_scale(kTypeOf<E>);
  each_row(rows, D, [&](int64_t i) {
    float* row = to + i * D;
    const float* values = open_row(from + token[i] * D, D, row);
    if (values != row) std::copy_n(values, D, row);
    for (int64_t k = 0; scale != 1 && k < D; ++k) row[k] *= scale;
  });
  return x;
}

template <class E>
at::Tensor NativeForward<E>::run(std::span<const int32_t> token, std::span<const KvAddress> addresses,
                                 const Stage<E>& stage, SavedForBackward* saved) {
  const BlockShape& s = shape_;
  const auto rows = static_cast<int64_t>(token.size());
  auto furthest = std::max_element(addresses.begin(), addresses.end(),
                                   [](const KvAddress& a, const KvAddress& b) { return a.position < b.position; });
  rope_.reach(furthest->position);
  const BlockForward<E> block(s, rope_, addresses, stage.shared);

  // The backward's GEMMs take no few rows.
  const int64_t P = saved != nullptr ? aligned(rows) : gemm_rows(rows, kTypeOf<E>);
  at::Tensor x = embed(token, P);
  Scratch<E> scratch(s, P, rows);
  Activations a;
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const Layer& layer = weights_.layers[l];
    if (l == 0) {
      a = allocate_block<E>(s, P, x, saved != nullptr);
      clear_padding<E>(a.attended, rows);
    }
    a.x = x;
    block.attention(layer, stage.key(l), stage.value(l), a, scratch);
    block.mlp(layer, a, scratch);
    if (saved != nullptr) x = rows_of(P, s.D);
    block.output(layer, a, scratch, x);
    if (saved == nullptr) continue;
    saved->blocks.push_back(saved_for_backward(a, saved->recompute));
    if (saved->recompute == Recompute::block || l + 1 == weights_.layers.size()) continue;
    Activations fresh = allocate_block<E>(s, P, x, true);
    clear_padding<E>(fresh.attended, rows);
    if (saved->recompute == Recompute::keep_attention) fresh.take_mlp_from(a);
    a = fresh;
  }
  if (saved != nullptr) {
    saved->last = x;
    if (saved->recompute != Recompute::none) saved->recomputed = a;
  }
  at::Tensor result = rows_of(rows, s.D);
  block.norm(x, weights_.norm, result);
  if (s.hidden_scale != 1) result.mul_(s.hidden_scale);
  return result;
}

template <class E>
at::Tensor NativeForward<E>::hidden(const Packed& packed) {
  const BlockShape& s = shape_;
  auto saved = std::make_shared<SavedForBackward>();
  saved->recompute = recompute_;
  int64_t tiles = 0;
  for (int64_t sequence = 0; sequence < packed.sequences(); ++sequence) {
    const int64_t before = packed.rows_before(sequence), length = before + packed.rows_of(sequence);
    const int64_t own = kernels::tiles_of(length) - before / 16;
    KvAddress start{tiles * s.K * 16 * s.d, own * 16 * s.d, tiles * s.K * 16 * s.stride, own * 16 * s.stride, 0};
    if (before > 0) {
      const KvAddress& from = saved->addresses[packed.begin[packed.prefix_of(sequence)]];
      start.share_prefix(from, before / 16 * 16, s.d, s.stride);
      if (before % 16 > 0) saved->shared.push_back({from, start, before});
    }
    for (int64_t i = before; i < length; ++i) {
      saved->addresses.push_back(start);
      saved->addresses.back().position = i;
    }
    tiles += own;
  }
  saved->key = rows_of<E>(tiles * s.K * 16, s.d);
  saved->value = rows_of<E>(tiles * s.K * 16, s.stride);
  const Stage<E> stage{nullptr, data<E>(saved->key), data<E>(saved->value), saved->shared};
  const bool wants = wants_gradient(weights_);
  at::Tensor out;
  {
    c10::NoGradGuard no_grad;
    out = run(packed.token, saved->addresses, stage, wants ? saved.get() : nullptr);
  }
  if (!wants) return out;
  saved->packed = packed;
  if (recompute_ != Recompute::block) {
    saved->key.reset();
    saved->value.reset();
  }
  return tied_to_parameters(weights_, out, [this, saved](const at::Tensor& d_hidden) {
    native_backward<E>(shape_, weights_, rope_, *saved, d_hidden);
  });
}

}  // namespace

std::unique_ptr<Forward> make_native_forward(const ModelConfig& config, const Weights& weights,
                                             const ModelOptions& options) {
  if (options.dtype == Dtype::bf16) return std::make_unique<NativeForward<Bf16>>(config, weights, options.recompute);
  return std::make_unique<NativeForward<float>>(config, weights, options.recompute);
}

}  // namespace ucas

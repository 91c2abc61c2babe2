// The forward pass on the CPU in f32: own row kernels (kernels/kernels.h) around products of a row count that is a
// multiple of 16, which makes every row of a result bit-equal whatever stands beside it. Decoding, prefill and
// training run the same code; what differs is where keys and values lie and whether activations are kept.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/autograd.h"
#include "model/block.h"
#include "model/forward.h"

namespace ucas {

namespace {

// Where a row's key and value go, in floats from a layer's start; its head k lies k * head floats further.
struct Place {
  int64_t key = 0, key_head = 0;
  int64_t value = 0, value_head = 0;
  int64_t position = 0;
};

// Keys [layer][slot][kv head][tile][d][16] and values [layer][slot][kv head][token][stride].
class TiledCache : public KvCache {
 public:
  TiledCache(const BlockShape& s, int64_t slots, int64_t length)
      : slots_(slots),
        length_(length),
        layers_(s.config.num_hidden_layers),
        kv_heads_(s.K),
        token_key_(16 * s.d),
        token_value_(s.stride) {
    int64_t tokens = kernels::tiles_of(length) * 16;
    key_head_ = tokens * s.d;
    value_head_ = tokens * s.stride;
    key_ = at::empty({layers_, slots, kv_heads_, key_head_}, at::kFloat);
    value_ = at::empty({layers_, slots, kv_heads_, value_head_}, at::kFloat);
  }
  int64_t slots() const override { return slots_; }
  int64_t length() const override { return length_; }
  void copy(int64_t from_slot, int64_t to_slot, int64_t tokens) override {
    UCAS_CHECK(from_slot >= 0 && from_slot < slots_ && to_slot >= 0 && to_slot < slots_ && tokens <= length_,
               "copying inside the cache");
    auto key_bytes = kernels::tiles_of(tokens) * token_key_ * sizeof(float);
    auto value_bytes = tokens * token_value_ * sizeof(float);
    for (int64_t layer = 0; layer < layers_; ++layer)
      for (int64_t head = 0; head < kv_heads_; ++head) {
        Place from = place(from_slot, 0), to = place(to_slot, 0);
        std::memcpy(key(layer) + to.key + head * key_head_, key(layer) + from.key + head * key_head_, key_bytes);
        std::memcpy(value(layer) + to.value + head * value_head_, value(layer) + from.value + head * value_head_,
                    value_bytes);
      }
  }

  Place place(int64_t slot, int64_t position) const {
    return {slot * kv_heads_ * key_head_, key_head_, slot * kv_heads_ * value_head_, value_head_, position};
  }
  float* key(int64_t layer) const { return key_.data_ptr<float>() + layer * slots_ * kv_heads_ * key_head_; }
  float* value(int64_t layer) const { return value_.data_ptr<float>() + layer * slots_ * kv_heads_ * value_head_; }

 private:
  int64_t slots_, length_, layers_, kv_heads_, token_key_, token_value_, key_head_, value_head_;
  at::Tensor key_, value_;
};

// Keys and values of a layer: a cache's, or one scratch layer that every layer overwrites in turn.
struct Stage {
  const TiledCache* cache = nullptr;
  float *scratch_key = nullptr, *scratch_value = nullptr;
  float* key(int64_t layer) const { return cache != nullptr ? cache->key(layer) : scratch_key; }
  float* value(int64_t layer) const { return cache != nullptr ? cache->value(layer) : scratch_value; }
};

void clear_padding(const at::Tensor& x, int64_t rows) {
  int64_t width = x.size(1), padding = x.size(0) - rows;
  std::fill_n(data(x) + rows * width, padding * width, 0.0f);
}

class NativeForward final : public Forward {
 public:
  NativeForward(const ModelConfig& config, const Weights& weights) : shape_{config}, weights_(weights), rope_(config) {}

  at::Tensor hidden(const Packed& packed) override;
  std::unique_ptr<KvCache> make_cache(int64_t slots, int64_t length) override {
    return std::make_unique<TiledCache>(shape_, slots, length);
  }
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) override {
    auto& tiled = static_cast<TiledCache&>(cache);
    std::vector<Place> places;
    for (size_t s = 0; s < slots.size(); ++s)
      for (int64_t i = 0; i < packed.begin[s + 1] - packed.begin[s]; ++i) places.push_back(tiled.place(slots[s], i));
    return run(packed.token, places, {&tiled}, nullptr);
  }
  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache) override {
    auto& tiled = static_cast<TiledCache&>(cache);
    std::vector<Place> places;
    for (size_t i = 0; i < token.size(); ++i) places.push_back(tiled.place(slot[i], position[i]));
    return run(token, places, {&tiled}, nullptr);
  }

 private:
  at::Tensor run(std::span<const int32_t> token, std::span<const Place> places, const Stage& stage, Kept* kept);
  at::Tensor embed(std::span<const int32_t> token) const;
  void norm(const at::Tensor& x, const at::Tensor& weight, int64_t rows, const at::Tensor& out) const;
  void place_heads(const Layer& layer, std::span<const Place> places, float* key, float* value, Activations& a) const;
  void attend(std::span<const Place> places, int64_t window, const float* key, const float* value,
              Activations& a) const;

  const BlockShape shape_;
  const Weights& weights_;
  RopeTable rope_;
};

at::Tensor NativeForward::embed(std::span<const int32_t> token) const {
  const auto rows = static_cast<int64_t>(token.size()), D = shape_.D;
  at::Tensor x = rows_of(aligned(rows), D);
  clear_padding(x, rows);
  const float* from = data(weights_.embed);
  float* to = data(x);
  each_row(rows, D, [&](int64_t i) { std::copy_n(from + token[i] * D, D, to + i * D); });
  return x;
}

void NativeForward::norm(const at::Tensor& x, const at::Tensor& weight, int64_t rows, const at::Tensor& out) const {
  const kernels::Table& kernel = kernels::table();
  const int64_t D = shape_.D;
  const float *from = data(x), *w = data(weight);
  float* to = data(out);
  each_row(rows, D, [&](int64_t i) { kernel.rms_norm(from + i * D, w, D, shape_.eps, to + i * D); });
}

// Makes q and k what attention reads, and stores k and v.
void NativeForward::place_heads(const Layer& layer, std::span<const Place> places, float* key, float* value,
                                Activations& a) const {
  const kernels::Table& kernel = kernels::table();
  const BlockShape& s = shape_;
  const float* bias = layer.qkv.bias.defined() ? data(layer.qkv.bias) : nullptr;
  const float* q_norm = layer.q_norm.defined() ? data(layer.q_norm) : nullptr;
  const float* k_norm = layer.k_norm.defined() ? data(layer.k_norm) : nullptr;
  float *qkv = data(a.qkv), *unnormed = a.unnormed.defined() ? data(a.unnormed) : nullptr;
  each_row(places.size(), 4 * s.N, [&](int64_t i) {
    const Place& place = places[i];
    float *row = qkv + i * s.N, *k = row + s.query, *v = k + s.key;
    if (bias != nullptr) kernel.add(bias, s.N, row);
    if (unnormed != nullptr) std::copy_n(row, s.query + s.key, unnormed + i * (s.query + s.key));
    for (int64_t head = 0; q_norm != nullptr && head < s.H + s.K; ++head) {
      float* x = row + head * s.d;
      kernel.rms_norm(x, head < s.H ? q_norm : k_norm, s.d, s.eps, x);
    }
    kernel.rope(row, rope_.cosines(place.position), rope_.sines(place.position), s.H + s.K, s.d);
    for (int64_t head = 0; head < s.K; ++head) {
      const float* from = k + head * s.d;
      float* tile = key + place.key + head * place.key_head + place.position / 16 * 16 * s.d + place.position % 16;
      for (int64_t x = 0; x < s.d; ++x) tile[x * 16] = from[x];
      float* to = value + place.value + head * place.value_head + place.position * s.stride;
      std::copy_n(v + head * s.d, s.d, to);
      std::fill(to + s.d, to + s.stride, 0.0f);
    }
  });
}

// Row i sees the keys of its sequence up to its own position, from the first one of the layer's window on.
void NativeForward::attend(std::span<const Place> places, int64_t window, const float* key, const float* value,
                           Activations& a) const {
  const kernels::Table& kernel = kernels::table();
  const BlockShape& s = shape_;
  const float* qkv = data(a.qkv);
  float *out = data(a.attended), *softmax = a.softmax.defined() ? data(a.softmax) : nullptr;
  const float scale = 1.0f / std::sqrt(static_cast<float>(s.d));
  at::parallel_for(0, places.size(), grain_of(128 * s.query), [&](int64_t begin, int64_t end) {
    std::vector<float> scratch;
    for (int64_t i = begin; i < end; ++i) {
      const Place& place = places[i];
      const int64_t first = first_key(window, place.position);
      scratch.resize(s.group * 16 * (kernels::tiles_of(place.position + 1) - first / 16));
      for (int64_t head = 0; head < s.K; ++head)
        kernel.attend({s.group, place.position + 1, s.d, s.stride, scale, qkv + i * s.N + head * s.group * s.d,
                       key + place.key + head * place.key_head, value + place.value + head * place.value_head,
                       scratch.data(), out + i * s.query + head * s.group * s.d,
                       softmax == nullptr ? nullptr : softmax + (i * s.H + head * s.group) * 2, first});
    }
  });
}

at::Tensor NativeForward::run(std::span<const int32_t> token, std::span<const Place> places, const Stage& stage,
                              Kept* kept) {
  const kernels::Table& kernel = kernels::table();
  const BlockShape& s = shape_;
  const auto rows = static_cast<int64_t>(token.size());
  const bool keep = kept != nullptr;
  auto furthest = std::max_element(places.begin(), places.end(),
                                   [](const Place& a, const Place& b) { return a.position < b.position; });
  rope_.reach(furthest->position);

  at::Tensor x = embed(token);
  Scratch scratch(s, aligned(rows));
  clear_padding(scratch.h, rows);
  clear_padding(scratch.act, rows);
  Activations a;
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const Layer& layer = weights_.layers[l];
    if (l == 0 || keep) {
      a = allocate_block(s, aligned(rows), x, keep);
      clear_padding(a.attended, rows);
    }
    norm(x, layer.input_norm, rows, scratch.h);
    layer.qkv.forward(scratch.h, a.qkv);
    place_heads(layer, places, stage.key(l), stage.value(l), a);
    attend(places, s.config.window(l), stage.key(l), stage.value(l), a);
    layer.out.forward_onto(x, a.attended, a.middle);
    norm(a.middle, layer.post_norm, rows, scratch.h);
    layer.gate_up.forward(scratch.h, a.gate_up);
    const float* gate_up = data(a.gate_up);
    float* act = data(scratch.act);
    each_row(rows, 8 * s.F, [&](int64_t i) { kernel.swiglu(gate_up + i * 2 * s.F, s.F, act + i * s.F); });
    if (keep) {
      kept->blocks.push_back(a);
      x = rows_of(aligned(rows), s.D);
    }
    layer.down.forward_onto(a.middle, scratch.act, x);
  }
  if (keep) kept->last = x;
  at::Tensor result = rows_of(rows, s.D);
  norm(x, weights_.norm, rows, result);
  return result;
}

at::Tensor NativeForward::hidden(const Packed& packed) {
  const BlockShape& s = shape_;
  std::vector<Place> places;
  int64_t tiles = 0;
  for (size_t sequence = 0; sequence + 1 < packed.begin.size(); ++sequence) {
    int64_t length = packed.begin[sequence + 1] - packed.begin[sequence], own = kernels::tiles_of(length);
    for (int64_t i = 0; i < length; ++i)
      places.push_back({tiles * s.K * 16 * s.d, own * 16 * s.d, tiles * s.K * 16 * s.stride, own * 16 * s.stride, i});
    tiles += own;
  }
  at::Tensor key = at::empty({tiles * s.K * 16 * s.d}, at::kFloat),
             value = at::empty({tiles * s.K * 16 * s.stride}, at::kFloat);
  const Stage stage{nullptr, data(key), data(value)};
  std::vector<at::Tensor> inputs;
  bool wants = false;
  for (const NamedTensor& parameter : weights_.parameters) {
    inputs.push_back(parameter.tensor);
    wants |= c10::GradMode::is_enabled() && parameter.tensor.requires_grad();
  }
  auto kept = wants ? std::make_shared<Kept>() : nullptr;
  at::Tensor out;
  {
    c10::NoGradGuard no_grad;
    out = run(packed.token, places, stage, kept.get());
  }
  if (!wants) return out;
  kept->packed = packed;
  return differentiable(inputs, {out}, [this, kept](const std::vector<at::Tensor>& gradients) {
    return native_backward(shape_, weights_, rope_, *kept, gradients[0]);
  })[0];
}

}  // namespace

std::unique_ptr<Forward> make_native_forward(const ModelConfig& config, const Weights& weights) {
  return std::make_unique<NativeForward>(config, weights);
}

}  // namespace ucas

#include "model/native.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/autograd.h"

namespace ucas {

namespace {

// Keys [layer][slot][kv head][tile][d][16] and values [layer][slot][kv head][token][stride].
class TiledCache : public KvCache {
 public:
  TiledCache(const Qwen2Config& c, int64_t slots, int64_t length)
      : slots_(slots), length_(length), layers_(c.num_hidden_layers), kv_heads_(c.num_key_value_heads) {
    int64_t tokens = kernels::tiles_of(length) * 16;
    key_head_ = tokens * c.head_dim;
    value_head_ = tokens * ((c.head_dim + 15) / 16 * 16);
    token_key_ = 16 * c.head_dim;
    token_value_ = value_head_ / tokens;
    key_ = at::empty({layers_, slots, kv_heads_, key_head_}, at::kFloat);
    value_ = at::empty({layers_, slots, kv_heads_, value_head_}, at::kFloat);
  }
  int64_t slots() const override { return slots_; }
  int64_t length() const override { return length_; }
  void copy(int64_t from_slot, int64_t to_slot, int64_t tokens) override {
    UCAS_CHECK(from_slot >= 0 && from_slot < slots_ && to_slot >= 0 && to_slot < slots_ && tokens <= length_,
               "copying inside the cache");
    auto key_bytes = static_cast<size_t>(kernels::tiles_of(tokens) * token_key_) * sizeof(float);
    auto value_bytes = static_cast<size_t>(tokens * token_value_) * sizeof(float);
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
  int64_t slots_, length_, layers_, kv_heads_, key_head_, value_head_, token_key_, token_value_;
  at::Tensor key_, value_;
};

at::Tensor rows_of(int64_t rows, int64_t width) { return at::empty({rows, width}, at::kFloat); }
float* data(const at::Tensor& x) { return x.data_ptr<float>(); }

template <class PerRow>
void each_row(int64_t rows, int64_t work, PerRow per_row) {
  at::parallel_for(0, rows, grain_of(work), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) per_row(row);
  });
}

void clear_padding(const at::Tensor& x, int64_t rows) {
  int64_t width = x.size(1), padding = x.size(0) - rows;
  std::fill_n(data(x) + rows * width, padding * width, 0.0f);
}

}  // namespace

// Keys and values of a layer: a cache's, or one scratch layer that every layer overwrites in turn.
struct NativeForward::Stage {
  const TiledCache* cache = nullptr;
  float *key = nullptr, *value = nullptr;
  float* key_of(size_t layer) const { return cache != nullptr ? cache->key(static_cast<int64_t>(layer)) : key; }
  float* value_of(size_t layer) const { return cache != nullptr ? cache->value(static_cast<int64_t>(layer)) : value; }
};

NativeForward::NativeForward(const Qwen2Config& config, const Weights& weights)
    : config_(config), weights_(weights), rope_(config.head_dim, config.rope_theta) {}

// Rotates q and k, stores k and v, then attends: row i sees the keys of its sequence up to its own position.
void NativeForward::attention(const Layer& layer, std::span<const Place> places, float* key, float* value,
                              KeptLayer& kept) {
  const Qwen2Config& c = config_;
  const kernels::Table& kernel = kernels::table();
  int64_t H = c.num_attention_heads, K = c.num_key_value_heads, d = c.head_dim, stride = (d + 15) / 16 * 16;
  int64_t width = (H + 2 * K) * d, group = H / K;
  auto rows = static_cast<int64_t>(places.size());
  float *qkv = data(kept.qkv), *out = data(kept.attended);
  float* norm = kept.norm.defined() ? data(kept.norm) : nullptr;
  const float* bias = data(layer.qkv_bias);
  each_row(rows, 4 * width, [&](int64_t i) {
    const Place& place = places[static_cast<size_t>(i)];
    float* row = qkv + i * width;
    kernel.bias_rope(row, bias, rope_.cosines(place.position), rope_.sines(place.position), H + 2 * K, H + K, d);
    for (int64_t head = 0; head < K; ++head) {
      const float *k = row + (H + head) * d, *v = row + (H + K + head) * d;
      float* tile = key + place.key + head * place.key_head + place.position / 16 * 16 * d + place.position % 16;
      for (int64_t x = 0; x < d; ++x) tile[x * 16] = k[x];
      float* to = value + place.value + head * place.value_head + place.position * stride;
      std::copy_n(v, d, to);
      std::fill(to + d, to + stride, 0.0f);
    }
  });
  at::parallel_for(0, rows, grain_of(128 * H * d), [&](int64_t begin, int64_t end) {
    std::vector<float> scratch;
    for (int64_t i = begin; i < end; ++i) {
      const Place& place = places[static_cast<size_t>(i)];
      scratch.resize(static_cast<size_t>(group * 16 * kernels::tiles_of(place.position + 1)));
      for (int64_t head = 0; head < K; ++head)
        kernel.attend({group, place.position + 1, d, stride, 1.0f / std::sqrt(static_cast<float>(d)),
                       qkv + i * width + head * group * d, key + place.key + head * place.key_head,
                       value + place.value + head * place.value_head, scratch.data(), out + (i * H + head * group) * d,
                       norm == nullptr ? nullptr : norm + (i * H + head * group) * 2});
    }
  });
}

at::Tensor NativeForward::run(std::span<const int32_t> token, std::span<const Place> places, const Stage& stage,
                              Kept* kept) {
  const Qwen2Config& c = config_;
  const kernels::Table& kernel = kernels::table();
  auto rows = static_cast<int64_t>(token.size());
  int64_t P = aligned(rows), D = c.hidden_size, F = c.intermediate_size, H = c.num_attention_heads, d = c.head_dim;
  int64_t N = (H + 2 * c.num_key_value_heads) * d;
  auto eps = static_cast<float>(c.rms_norm_eps);
  auto furthest = std::max_element(places.begin(), places.end(),
                                   [](const Place& a, const Place& b) { return a.position < b.position; });
  rope_.reach(furthest->position);

  at::Tensor x = rows_of(P, D), h = rows_of(P, D), act = rows_of(P, F);
  clear_padding(x, rows);
  clear_padding(h, rows);
  clear_padding(act, rows);
  const float* embed = data(weights_.embed);
  float *first = data(x), *act_rows = data(act);
  each_row(rows, D, [&](int64_t i) { std::copy_n(embed + token[static_cast<size_t>(i)] * D, D, first + i * D); });
  auto norm_rows = [&](const at::Tensor& from, const at::Tensor& weight) {
    const float *source = data(from), *w = data(weight);
    float* to = data(h);
    each_row(rows, D, [&](int64_t i) { kernel.rms_norm(source + i * D, w, D, eps, to + i * D); });
  };

  KeptLayer layer;  // without `kept` its buffers serve every layer
  for (size_t l = 0; l < weights_.layers.size(); ++l) {
    const Layer& w = weights_.layers[l];
    if (l == 0 || kept != nullptr) {
      layer = {x, rows_of(P, N), rows_of(P, H * d), {}, rows_of(P, D), rows_of(P, 2 * F)};
      if (kept != nullptr) layer.norm = rows_of(P, 2 * H);
      clear_padding(layer.attended, rows);
    }
    norm_rows(x, w.input_norm);
    at::mm_out(layer.qkv, h, w.qkv.t());
    attention(w, places, stage.key_of(l), stage.value_of(l), layer);
    at::addmm_out(layer.middle, x, layer.attended, w.o.detach().t());
    norm_rows(layer.middle, w.post_norm);
    at::mm_out(layer.gate_up, h, w.gate_up.t());
    const float* gate_up = data(layer.gate_up);
    each_row(rows, 8 * F, [&](int64_t i) { kernel.swiglu(gate_up + i * 2 * F, F, act_rows + i * F); });
    if (kept != nullptr) {
      kept->layers.push_back(layer);
      x = rows_of(P, D);
    }
    at::addmm_out(x, layer.middle, act, w.down.detach().t());
  }
  if (kept != nullptr) kept->last = x;
  at::Tensor result = rows_of(rows, D);
  const float *source = data(x), *w = data(weights_.norm);
  float* out = data(result);
  each_row(rows, D, [&](int64_t i) { kernel.rms_norm(source + i * D, w, D, eps, out + i * D); });
  return result;
}

at::Tensor NativeForward::hidden(const Packed& packed) {
  const Qwen2Config& c = config_;
  int64_t K = c.num_key_value_heads, d = c.head_dim, stride = (d + 15) / 16 * 16;
  bool wants = c10::GradMode::is_enabled();
  std::vector<Place> places;
  int64_t tiles = 0;
  for (size_t s = 0; s + 1 < packed.begin.size(); ++s) {
    int64_t length = packed.begin[s + 1] - packed.begin[s], own = kernels::tiles_of(length);
    for (int64_t i = 0; i < length; ++i)
      places.push_back({tiles * K * 16 * d, own * 16 * d, tiles * K * 16 * stride, own * 16 * stride, i});
    tiles += own;
  }
  at::Tensor key = at::empty({tiles * K * 16 * d}, at::kFloat),
             value = at::empty({tiles * K * 16 * stride}, at::kFloat);
  Stage stage{nullptr, data(key), data(value)};
  auto kept = wants ? std::make_shared<Kept>() : nullptr;
  at::Tensor out;
  {
    c10::NoGradGuard no_grad;
    out = run(packed.token, places, stage, kept.get());
  }
  if (!wants) return out;
  kept->token = packed.token;
  kept->position = packed.position;
  kept->begin = packed.begin;
  std::vector<at::Tensor> inputs;
  for (const NamedTensor& parameter : weights_.parameters) inputs.push_back(parameter.tensor);
  return differentiable(inputs, {out}, [this, kept](const std::vector<at::Tensor>& gradients) {
    return native_backward(config_, weights_, rope_, *kept, gradients[0]);
  })[0];
}

std::unique_ptr<KvCache> NativeForward::make_cache(int64_t slots, int64_t length) {
  return std::make_unique<TiledCache>(config_, slots, length);
}

at::Tensor NativeForward::prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) {
  auto& tiled = static_cast<TiledCache&>(cache);
  std::vector<Place> places;
  for (size_t s = 0; s < slots.size(); ++s)
    for (int64_t i = 0; i < packed.begin[s + 1] - packed.begin[s]; ++i) places.push_back(tiled.place(slots[s], i));
  return run(packed.token, places, {&tiled}, nullptr);
}

at::Tensor NativeForward::decode(std::span<const int32_t> token, std::span<const int32_t> position,
                                 std::span<const int64_t> slot, KvCache& cache) {
  auto& tiled = static_cast<TiledCache&>(cache);
  std::vector<Place> places;
  for (size_t i = 0; i < token.size(); ++i) places.push_back(tiled.place(slot[i], position[i]));
  return run(token, places, {&tiled}, nullptr);
}

}  // namespace ucas

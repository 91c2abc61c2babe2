#include "model/generic.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "base/error.h"

namespace ucas {

namespace {

class GenericCache : public KvCache {
 public:
  GenericCache(const Qwen2Config& c, int64_t slots, int64_t length, at::Device device)
      : slots_(slots), length_(length) {
    at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(device);
    for (int64_t i = 0; i < c.num_hidden_layers; ++i)
      for (std::vector<at::Tensor>* side : {&key, &value})
        side->push_back(at::zeros({slots, length, c.num_key_value_heads, c.head_dim}, options));
  }
  int64_t slots() const override { return slots_; }
  int64_t length() const override { return length_; }
  void copy(int64_t from_slot, int64_t to_slot, int64_t tokens) override {
    for (std::vector<at::Tensor>* side : {&key, &value})
      for (at::Tensor& t : *side)
        t.select(0, to_slot).narrow(0, 0, tokens).copy_(t.select(0, from_slot).narrow(0, 0, tokens));
  }

  std::vector<at::Tensor> key, value;  // per layer [slots, length, K, d]

 private:
  int64_t slots_, length_;
};

at::Tensor indices(const std::vector<int64_t>& values, at::Device device) {
  at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), host.data_ptr<int64_t>());
  return host.to(device);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  int64_t half = x.size(-1) / 2;
  at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  return at::cat({a * cos - b * sin, b * cos + a * sin}, -1);
}

// [n, T, K, d] -> [n, H, T, d], each key/value head repeated for its query heads.
at::Tensor spread_heads(const at::Tensor& x, int64_t heads) {
  return x.transpose(1, 2).repeat_interleave(heads / x.size(2), 1);
}

}  // namespace

struct GenericForward::Rows {
  at::Tensor token;     // [R]
  at::Tensor cos, sin;  // [R, 1, d / 2]
};

GenericForward::GenericForward(const Qwen2Config& config, const Weights& weights)
    : config_(config), weights_(weights), rope_(config.head_dim, config.rope_theta) {}

GenericForward::Rows GenericForward::rows(std::span<const int32_t> token, std::span<const int32_t> position) {
  auto count = static_cast<int64_t>(token.size());
  int64_t half = rope_.half();
  rope_.reach(*std::max_element(position.begin(), position.end()));
  at::Tensor cos = at::empty({count, 1, half}, at::kFloat), sin = at::empty_like(cos);
  for (int64_t i = 0; i < count; ++i) {
    int64_t p = position[static_cast<size_t>(i)];
    std::copy_n(rope_.cosines(p), half, cos.data_ptr<float>() + i * half);
    std::copy_n(rope_.sines(p), half, sin.data_ptr<float>() + i * half);
  }
  at::Device device = weights_.embed.device();
  return {indices({token.begin(), token.end()}, device), cos.to(device), sin.to(device)};
}

template <class Attend>
at::Tensor GenericForward::run(const Rows& rows, Attend attend) {
  const Qwen2Config& c = config_;
  auto norm = [&](const at::Tensor& x, const at::Tensor& weight) {
    return at::rms_norm(x, {c.hidden_size}, weight, c.rms_norm_eps);
  };
  at::Tensor x = at::index_select(weights_.embed, 0, rows.token);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const Layer& layer = weights_.layers[i];
    at::Tensor h = norm(x, layer.input_norm);
    at::Tensor q = at::linear(h, layer.q, layer.q_bias).view({-1, c.num_attention_heads, c.head_dim});
    at::Tensor k = at::linear(h, layer.k, layer.k_bias).view({-1, c.num_key_value_heads, c.head_dim});
    at::Tensor v = at::linear(h, layer.v, layer.v_bias).view({-1, c.num_key_value_heads, c.head_dim});
    at::Tensor o = attend(i, rotate(q, rows.cos, rows.sin), rotate(k, rows.cos, rows.sin), v);
    x = x + at::linear(o.reshape({-1, c.num_attention_heads * c.head_dim}), layer.o);
    h = norm(x, layer.post_norm);
    x = x + at::linear(at::silu(at::linear(h, layer.gate)) * at::linear(h, layer.up), layer.down);
  }
  return norm(x, weights_.norm);
}

// Sequences side by side, padded at their ends; with causal attention nothing reads the padding.
at::Tensor GenericForward::packed_forward(const Packed& packed, KvCache* cache, std::span<const int64_t> slots) {
  const Qwen2Config& c = config_;
  auto sequences = static_cast<int64_t>(packed.begin.size()) - 1;
  int64_t longest = 0;
  for (int64_t s = 0; s < sequences; ++s)
    longest = std::max(longest, packed.begin[static_cast<size_t>(s) + 1] - packed.begin[static_cast<size_t>(s)]);
  std::vector<int64_t> to_grid(static_cast<size_t>(sequences * longest), 0), from_grid;
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t row = packed.begin[static_cast<size_t>(s)]; row < packed.begin[static_cast<size_t>(s) + 1]; ++row) {
      int64_t cell = s * longest + row - packed.begin[static_cast<size_t>(s)];
      to_grid[static_cast<size_t>(cell)] = row;
      from_grid.push_back(cell);
    }
  at::Device device = weights_.embed.device();
  at::Tensor to = indices(to_grid, device), from = indices(from_grid, device);
  auto grid = [&](const at::Tensor& x) {
    return at::index_select(x, 0, to).view({sequences, longest, x.size(1), c.head_dim});
  };
  auto* store = static_cast<GenericCache*>(cache);
  return run(rows(packed.token, packed.position),
             [&](size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
               at::Tensor keys = grid(k), values = grid(v);
               for (size_t s = 0; store != nullptr && s < slots.size(); ++s) {
                 int64_t count = packed.begin[s + 1] - packed.begin[s];
                 for (auto [side, from_side] : {std::pair(&store->key, &keys), std::pair(&store->value, &values)})
                   (*side)[layer]
                       .select(0, slots[s])
                       .narrow(0, 0, count)
                       .copy_(from_side->select(0, static_cast<int64_t>(s)).narrow(0, 0, count));
               }
               at::Tensor o = at::scaled_dot_product_attention(
                   grid(q).transpose(1, 2), spread_heads(keys, c.num_attention_heads),
                   spread_heads(values, c.num_attention_heads), {}, 0.0, /*is_causal=*/true);
               return at::index_select(o.transpose(1, 2).reshape({sequences * longest, -1}), 0, from);
             });
}

at::Tensor GenericForward::hidden(const Packed& packed) { return packed_forward(packed, nullptr, {}); }

std::unique_ptr<KvCache> GenericForward::make_cache(int64_t slots, int64_t length) {
  return std::make_unique<GenericCache>(config_, slots, length, weights_.embed.device());
}

at::Tensor GenericForward::prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) {
  return packed_forward(packed, &cache, slots);
}

at::Tensor GenericForward::decode(std::span<const int32_t> token, std::span<const int32_t> position,
                                  std::span<const int64_t> slot, KvCache& cache) {
  auto& store = static_cast<GenericCache&>(cache);
  const Qwen2Config& c = config_;
  int64_t reach = *std::max_element(position.begin(), position.end()) + 1;
  at::Device device = weights_.embed.device();
  at::Tensor slots = indices({slot.begin(), slot.end()}, device);
  at::Tensor positions = indices({position.begin(), position.end()}, device);
  at::Tensor flat = slots * store.length() + positions;
  // [n, 1, 1, reach]: key j is seen from position >= j.
  at::Tensor seen = at::arange(reach, positions.options()).unsqueeze(0).le(positions.unsqueeze(1));
  at::Tensor mask = seen.unsqueeze(1).unsqueeze(1);
  return run(rows(token, position), [&](size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    auto recall = [&](at::Tensor& side, const at::Tensor& fresh) {
      side.view({-1, c.num_key_value_heads, c.head_dim}).index_copy_(0, flat, fresh);
      return spread_heads(at::index_select(side.narrow(1, 0, reach), 0, slots), c.num_attention_heads);
    };
    at::Tensor keys = recall(store.key[layer], k), values = recall(store.value[layer], v);
    return at::scaled_dot_product_attention(q.unsqueeze(2), keys, values, mask).squeeze(2);
  });
}

}  // namespace ucas

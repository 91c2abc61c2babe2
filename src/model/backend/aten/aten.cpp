// The forward pass in plain ATen operations and autograd: any device. On the CPU native.cpp is used instead, and this
// path is what it is checked against.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "model/backend/block.h"
#include "model/transformer.h"

namespace ucas {

namespace {

class AtenCache : public KvCache {
 public:
  AtenCache(const ModelConfig& c, int64_t slots, int64_t length, at::TensorOptions options)
      : slots_(slots), length_(length) {
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

// Key `column` is seen from position `row`, both of any shapes that broadcast; true where it is.
at::Tensor in_sight(const at::Tensor& column, const at::Tensor& row, int64_t window) {
  at::Tensor seen = column.le(row);
  return window == 0 ? seen : seen.logical_and(column.gt(row - window));
}

struct AtenRows {
  at::Tensor token;                  // [R]
  std::vector<at::Tensor> cos, sin;  // [R, 1, d / 2] of each of RopeTables
};

class AtenForward final : public Forward {
 public:
  AtenForward(const ModelConfig& config, const Weights& weights, Dtype dtype)
      : shape_{config}, weights_(weights), rope_(config), type_(dtype == Dtype::bf16 ? at::kBFloat16 : at::kFloat) {}

  at::Tensor hidden(const Packed& packed) override { return packed_forward(packed, nullptr, {}); }
  bool backward_by_hand() const override { return false; }
  std::unique_ptr<KvCache> make_cache(const KvBudget& room) override {
    return std::make_unique<AtenCache>(shape_.config, room.slots + room.prompt_slots, room.length,
                                       at::TensorOptions().dtype(type_).device(device()));
  }
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) override {
    return packed_forward(packed, &cache, slots);
  }
  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache) override;

 private:
  at::Device device() const { return weights_.norm.device(); }
  AtenRows rows(std::span<const int32_t> token, std::span<const int32_t> position);
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    if (!weight.defined()) return x;
    return at::rms_norm(x, {weight.size(0)}, shape_.norm_scale(weight), shape_.config.rms_norm_eps);
  }
  // What is added to the residual stream of what a half of the block gives.
  at::Tensor output(const at::Tensor& y, const at::Tensor& weight) const {
    if (!shape_.adds_apart) return y;
    return shape_.spec.norms_after ? norm(y.to(at::kFloat), weight) : y.to(at::kFloat) * shape_.residual;
  }
  at::Tensor gate(const at::Tensor& x) const {
    return shape_.spec.gate == Gate::silu ? at::silu(x) : at::gelu(x, "tanh");
  }
  // Of scores; none: what attention itself takes, 1 / sqrt(d).
  std::optional<double> scale() const {
    const ModelConfig& c = shape_.config;
    return c.query_pre_attn_scalar > 0 || c.attention_multiplier > 0 ? std::optional<double>(shape_.scale)
                                                                     : std::nullopt;
  }
  // `attend` gets a layer's q [R, H, d], k and v [R, K, d] and gives [R, H, d].
  template <class Attend>
  at::Tensor run(const AtenRows& rows, Attend attend) const;
  at::Tensor packed_forward(const Packed& packed, KvCache* cache, std::span<const int64_t> slots);

  const BlockShape shape_;
  const Weights& weights_;
  RopeTables rope_;
  const at::ScalarType type_;  // of GEMMs and what they read; the residual stream is f32
};

AtenRows AtenForward::rows(std::span<const int32_t> token, std::span<const int32_t> position) {
  const int64_t furthest = *std::max_element(position.begin(), position.end());
  rope_.reach(furthest);
  const at::Tensor places = indices({position.begin(), position.end()}, at::kCPU);
  AtenRows rows{indices({token.begin(), token.end()}, device()), {}, {}};
  for (size_t table = 0; table < rope_.count(); ++table) {
    const RopeTable& rope = rope_.of(table > 0);
    const auto rows_of_table = [&](const float* from) {
      const at::Tensor all = at::from_blob(const_cast<float*>(from), {furthest + 1, 1, rope.half()}, at::kFloat);
      return at::index_select(all, 0, places).to(device());
    };
    rows.cos.push_back(rows_of_table(rope.cosines(0)));
    rows.sin.push_back(rows_of_table(rope.sines(0)));
  }
  return rows;
}

template <class Attend>
at::Tensor AtenForward::run(const AtenRows& rows, Attend attend) const {
  const BlockShape& s = shape_;
  at::Tensor x = at::index_select(weights_.embed.parameter, 0, rows.token).to(type_).to(at::kFloat);
  if (const float scale = s.embedding_scale(type_); scale != 1) x = x * scale;
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const Layer& layer = weights_.layers[i];
    at::Tensor h = norm(x, layer.input_norm).to(type_);
    const auto heads = [&](Layer::QkvPart part, const at::Tensor& weight) {
      at::Tensor x = layer.qkv.part(part, h).to(at::kFloat);
      if (weight.defined()) x = norm(x.view({x.size(0), -1, weight.size(0)}), weight);
      return x.view({h.size(0), -1, s.d});
    };
    at::Tensor q = heads(Layer::kQuery, layer.q_norm), k = heads(Layer::kKey, layer.k_norm);
    at::Tensor v = layer.qkv.part(Layer::kValue, h).view({-1, s.K, s.d});
    const at::Tensor &cos = rows.cos[layer.local_rope], &sin = rows.sin[layer.local_rope];
    at::Tensor attended = attend(i, rotate(q, cos, sin).to(type_), rotate(k, cos, sin).to(type_), v);
    at::Tensor middle = x + output(layer.out.part(0, attended.reshape({-1, s.query})), layer.attention_output_norm);
    h = norm(middle, layer.mlp_norm).to(type_);
    at::Tensor act = gate(layer.gate_up.part(Layer::kGate, h)) * layer.gate_up.part(Layer::kUp, h);
    x = middle + output(layer.down.part(0, act), layer.mlp_output_norm);
  }
  x = norm(x, weights_.norm);
  return s.hidden_scale == 1 ? x : x * s.hidden_scale;
}

// Sequences side by side, padded at their ends; with causal attention nothing reads the padding.
at::Tensor AtenForward::packed_forward(const Packed& packed, KvCache* cache, std::span<const int64_t> slots) {
  const BlockShape& shape = shape_;
  const std::vector<int64_t>& begin = packed.begin;
  auto sequences = static_cast<int64_t>(begin.size()) - 1;
  int64_t longest = 0;
  for (int64_t s = 0; s < sequences; ++s) longest = std::max(longest, begin[s + 1] - begin[s]);
  std::vector<int64_t> to_grid(sequences * longest, 0), from_grid;
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t row = begin[s]; row < begin[s + 1]; ++row) {
      int64_t cell = s * longest + row - begin[s];
      to_grid[cell] = row;
      from_grid.push_back(cell);
    }
  at::Tensor to = indices(to_grid, device()), from = indices(from_grid, device());
  auto grid = [&](const at::Tensor& x) {
    return at::index_select(x, 0, to).view({sequences, longest, x.size(1), shape.d});
  };
  auto* store = static_cast<AtenCache*>(cache);
  at::Tensor cells = at::arange(longest, to.options());
  return run(rows(packed.token, packed.position),
             [&](size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
               at::Tensor keys = grid(k), values = grid(v);
               for (size_t s = 0; store != nullptr && s < slots.size(); ++s) {
                 int64_t count = begin[s + 1] - begin[s];
                 for (auto [side, of] : {std::pair(&store->key, &keys), std::pair(&store->value, &values)})
                   (*side)[layer].select(0, slots[s]).narrow(0, 0, count).copy_(of->select(0, s).narrow(0, 0, count));
               }
               const int64_t window = shape.config.window(layer);
               std::optional<at::Tensor> mask;
               if (window > 0) mask = in_sight(cells, cells.unsqueeze(1), window);
               at::Tensor o = at::scaled_dot_product_attention(grid(q).transpose(1, 2), spread_heads(keys, shape.H),
                                                               spread_heads(values, shape.H), mask, 0.0,
                                                               /*is_causal=*/!mask, scale());
               return at::index_select(o.transpose(1, 2).reshape({sequences * longest, -1}), 0, from);
             });
}

at::Tensor AtenForward::decode(std::span<const int32_t> token, std::span<const int32_t> position,
                               std::span<const int64_t> slot, KvCache& cache) {
  auto& store = static_cast<AtenCache&>(cache);
  int64_t reach = *std::max_element(position.begin(), position.end()) + 1;
  at::Tensor slots = indices({slot.begin(), slot.end()}, device());
  at::Tensor positions = indices({position.begin(), position.end()}, device());
  at::Tensor flat = slots * store.length() + positions;
  at::Tensor reached = at::arange(reach, positions.options());
  return run(rows(token, position), [&](size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    auto recall = [&](at::Tensor& side, const at::Tensor& fresh) {
      side.view({-1, shape_.K, shape_.d}).index_copy_(0, flat, fresh);
      return spread_heads(at::index_select(side.narrow(1, 0, reach), 0, slots), shape_.H);
    };
    at::Tensor keys = recall(store.key[layer], k), values = recall(store.value[layer], v);
    at::Tensor mask = in_sight(reached, positions.unsqueeze(1), shape_.config.window(layer));  // [n, reach]
    return at::scaled_dot_product_attention(q.unsqueeze(2), keys, values, mask.unsqueeze(1).unsqueeze(1), 0.0,
                                            /*is_causal=*/false, scale())
        .squeeze(2);
  });
}

}  // namespace

std::unique_ptr<Forward> make_aten_forward(const ModelConfig& config, const Weights& weights,
                                           const ModelOptions& options) {
  return std::make_unique<AtenForward>(config, weights, options.dtype);
}

}  // namespace ucas

// One block of the model, as native.cpp, native_backward.cpp (from the bottom up) and aten.cpp run it: every step by
// name, every buffer with its size. [..]: in families whose spec has it (hf/block_spec.h).
//
//   x [R, D] ------------+
//   | [norm]             |   h = norm(x, input_norm); norm(x, w) = rms_norm(x) w [or (1 + w)]
//   | project            |   qkv = h W_qkv [+ bias]
//   | place              |   q, k: [normed, each head or all], rotated [or not]; k, v to where rows find them
//   | attend             |   attended = softmax(q k scale) v over the row's sequence up to its own position
//   |                    |   [of a layer with a window: its last `window` keys]
//   | [norm after]       |   attention_output = attended W_out, then its norm
//   | residual  <--------+   middle = x + attended W_out [or that norm, or residual_multiplier times it]
//   middle [R, D] -------+
//   | [norm]             |   h = norm(middle, mlp_norm)
//   | mlp                |   act = gate(h W_gate) * (h W_up), gate: silu [or gelu]
//   | [norm after]       |   mlp_output = act W_down, then its norm
//   | residual  <--------+   next x = middle + act W_down [or that norm, or residual_multiplier times it]
//
// The first x is the embedding [times sqrt(D), or a multiplier], the last one, normed, is what the LM head reads [over
// logits_scaling].
// Legend: R rows (tokens), D width, H query heads, K key/value heads, d head width, F MLP width. On the native path
// buffers have P = R rounded up to a multiple of 16 rows, whole vectors of GEMMs (model/gemm/gemm.h), but where
// nothing is trained a few rows have no padding. Rows that a GEMM sums over are 0 beyond R.
// E is the type in which rows are kept between steps, float or Bf16; the residual stream (x, middle) and its gradient
// are f32 in both, and every step computes in f32.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <vector>

#include "core/model_options.h"
#include "hf/model_config.h"
#include "kernels/kernels.h"
#include "model/attention/rope.h"
#include "model/tensor/parallel.h"
#include "model/weights.h"

namespace ucas {

using kernels::Bf16;

constexpr int64_t kRowAlign = 16;
inline int64_t aligned(int64_t rows) { return (rows + kRowAlign - 1) / kRowAlign * kRowAlign; }

template <class E = float>
E* data(const at::Tensor& x) {
  if constexpr (std::is_same_v<E, float>) {
    return x.data_ptr<float>();
  } else {
    return reinterpret_cast<E*>(x.data_ptr<at::BFloat16>());
  }
}
template <class E>
constexpr at::ScalarType kTypeOf = std::is_same_v<E, float> ? at::kFloat : at::kBFloat16;
template <class E = float>
at::Tensor rows_of(int64_t rows, int64_t width) {
  return at::empty({rows, width}, kTypeOf<E>);
}
template <class E>
void clear_padding(const at::Tensor& x, int64_t rows) {
  const int64_t width = x.size(1);
  std::fill_n(data<E>(x) + rows * width, (x.size(0) - rows) * width, E{});
}

// Rows [first, first + count) of x in the type of a matrix, contiguous, padded with zero rows to P.
inline at::Tensor padded_rows(const at::Tensor& x, int64_t first, int64_t count, int64_t P, at::ScalarType type) {
  at::Tensor rows = x.narrow(0, first, count);
  if (count == P) return rows.to(type).contiguous();
  at::Tensor padded = at::zeros({P, x.size(1)}, x.options().dtype(type));
  padded.narrow(0, 0, count).copy_(rows);
  return padded;
}
inline at::Tensor aligned_rows(const at::Tensor& x, int64_t first, int64_t count, at::ScalarType type) {
  return padded_rows(x, first, count, aligned(count), type);
}

// A kept row to compute with: itself, or its numbers widened into `scratch` [n].
inline float* open_row(float* row, int64_t /*n*/, float* /*scratch*/) { return row; }
inline const float* open_row(const float* row, int64_t /*n*/, float* /*scratch*/) { return row; }
inline float* open_row(const Bf16* row, int64_t n, float* scratch) {
  kernels::table().widen(row, n, scratch);
  return scratch;
}
// The same for a row that is only written; to be closed.
inline float* fresh_row(float* row, float* /*scratch*/) { return row; }
inline float* fresh_row(Bf16* /*row*/, float* scratch) { return scratch; }
inline void close_row(float* /*row*/, int64_t /*n*/, const float* /*values*/) {}
inline void close_row(Bf16* row, int64_t n, const float* values) { kernels::table().narrow(values, n, row); }
// This thread's own; valid until it asks again.
inline float* thread_scratch(int64_t floats) {
  thread_local std::vector<float> scratch;
  if (static_cast<int64_t>(scratch.size()) < floats) scratch.resize(floats);
  return scratch.data();
}

// Rows that are worth a thread of their own when each is about `work` simple operations: some 20 us.
inline int64_t grain_of(int64_t work) { return work >= 131072 ? 1 : 131072 / (work > 0 ? work : 1); }

template <class PerRow>
void each_row(int64_t rows, int64_t work, PerRow per_row) {
  parallel_for(rows, grain_of(work), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) per_row(row);
  });
}

struct BlockShape {
  const ModelConfig& config;
  int64_t D = config.hidden_size, F = config.intermediate_size, d = config.head_dim;
  int64_t H = config.num_attention_heads, K = config.num_key_value_heads;
  int64_t query = H * d, key = K * d;
  int64_t N = query + 2 * key;          // a row of q, k and v
  int64_t group = H / K;                // query heads that share a key/value head
  int64_t stride = (d + 15) / 16 * 16;  // numbers of a stored value row
  float eps = static_cast<float>(config.rms_norm_eps);
  const BlockSpec& spec = config.family->block;
  // of scores
  float scale = config.attention_multiplier > 0 ? static_cast<float>(config.attention_multiplier)
                : config.query_pre_attn_scalar > 0
                    ? static_cast<float>(1 / std::sqrt(static_cast<double>(config.query_pre_attn_scalar)))
                    : 1.0f / std::sqrt(static_cast<float>(d));

  float residual = static_cast<float>(config.residual_multiplier);
  bool adds_apart = spec.norms_after || residual != 1;  // what a half gives is not what is added
  float hidden_scale = static_cast<float>(1 / config.logits_scaling);

  // What a norm multiplies by, of its weight.
  at::Tensor norm_scale(const at::Tensor& weight) const { return spec.norm_offset ? weight + 1 : weight; }
  // What embeddings are multiplied by, in a model that computes in `type`: rounded to it, as transformers does.
  float embedding_scale(at::ScalarType type) const {
    if (!spec.scaled_embedding) return static_cast<float>(config.embedding_multiplier);
    const auto root = static_cast<float>(std::sqrt(static_cast<double>(D)));
    return type == at::kBFloat16 ? static_cast<float>(c10::BFloat16(root)) : root;
  }
};

// The gate of the MLP, over a row [gate | up] of 2 n.
inline auto gate_forward(const BlockShape& s) {
  return s.spec.gate == Gate::silu ? kernels::table().swiglu : kernels::table().geglu;
}
inline auto gate_backward(const BlockShape& s) {
  return s.spec.gate == Gate::silu ? kernels::table().swiglu_backward : kernels::table().geglu_backward;
}

// What the backward of a block needs of its forward, on each back end that has one by hand. Where it is not kept, one
// set serves every block of the CPU's.
struct Activations {
  at::Tensor x;         // [P, D] input, f32
  at::Tensor unnormed;  // [P, (H + K) d] q and k before their norm; only for backward, and only where there is one
  at::Tensor qkv;       // [P, N] as attention reads it
  at::Tensor attended;  // [P, H d]
  at::Tensor softmax;   // [P, H, 2] f32: largest score and 1 / sum; only for backward (on a GPU flash attention's)
  at::Tensor middle;    // [P, D] f32
  at::Tensor gate_up;   // [P, 2F]
  // [P, D] before their norms or multiplier; only where the family has these. One buffer for both where there is no
  // backward.
  at::Tensor attention_output, mlp_output;

  // What comes after `attended`.
  void take_mlp_from(const Activations& from) {
    middle = from.middle;
    gate_up = from.gate_up;
    attention_output = from.attention_output;
    mlp_output = from.mlp_output;
  }
};
template <class E>
Activations allocate_block(const BlockShape& s, int64_t P, const at::Tensor& x, bool for_backward) {
  const at::Tensor output = s.adds_apart ? rows_of<E>(P, s.D) : at::Tensor();
  return {x,
          for_backward && s.spec.qk_norm ? rows_of<E>(P, s.query + s.key) : at::Tensor(),
          rows_of<E>(P, s.N),
          rows_of<E>(P, s.query),
          for_backward ? rows_of(P, 2 * s.H) : at::Tensor(),
          rows_of(P, s.D),
          rows_of<E>(P, 2 * s.F),
          output,
          for_backward && s.spec.norms_after ? rows_of<E>(P, s.D) : output};
}

// Activations of a block that are saved for backward; the rest is recomputed, bit-identical.
inline Activations saved_for_backward(const Activations& a, Recompute recompute) {
  Activations saved = a;
  if (recompute == Recompute::block) return {.x = a.x};
  if (recompute == Recompute::keep_attention) saved.take_mlp_from({});
  return saved;
}

// block.run(layer, what is saved of it, gradients) for each block, last one first, between the calls of the backward
// hook. What was saved is freed on the way.
template <class Block, class... Gradients>
void each_block_backward(const Weights& weights, std::vector<Activations>& saved, Block& block,
                         const Gradients&... gradients) {
  for (size_t l = weights.layers.size(); l-- > 0;) {
    const Layer& layer = weights.layers[l];
    if (weights.watch != nullptr) weights.watch->before(l);
    block.run(layer, saved[l], gradients...);
    if (weights.watch != nullptr) weights.watch->after(l);
    saved[l] = {};  // its memory serves the blocks still to come
  }
}

// Saved by no block: recomputed in backward where it is needed.
template <class E>
struct Scratch {
  Scratch(const BlockShape& s, int64_t P, int64_t rows) : h(rows_of<E>(P, s.D)), act(rows_of<E>(P, s.F)) {
    clear_padding<E>(h, rows);
    clear_padding<E>(act, rows);
  }
  at::Tensor h;    // [P, D] after a norm
  at::Tensor act;  // [P, F]
};

// Where a row's key and value go, in numbers from a layer's start; its head k is k * head further.
struct KvAddress {
  int64_t key = 0, key_head = 0;
  int64_t value = 0, value_head = 0;
  int64_t position = 0;
  // The first `shared` tokens, whole tiles, may be where another sequence begins; `key` and `value` count as if they
  // preceded the others here.
  int64_t shared = 0;
  int64_t shared_key = 0, shared_key_head = 0;
  int64_t shared_value = 0, shared_value_head = 0;

  void share_prefix(const KvAddress& from, int64_t tokens, int64_t d, int64_t stride) {
    shared = tokens;
    shared_key = from.key, shared_key_head = from.key_head;
    shared_value = from.value, shared_value_head = from.value_head;
    key -= tokens * d, value -= tokens * stride;
  }
  // Where the tile of a token, and its value, of this sequence's own begin.
  int64_t key_at(int64_t head, int64_t token, int64_t d) const { return key + head * key_head + token / 16 * 16 * d; }
  int64_t value_at(int64_t head, int64_t token, int64_t stride) const {
    return value + head * value_head + token * stride;
  }
  bool follows(const KvAddress& before) const {
    return position == before.position + 1 && key == before.key && value == before.value && shared == before.shared;
  }
};

// The first `tokens` keys and values of a sequence, shared: those beyond whole tiles also to where another finds its
// own.
struct SharedPrefix {
  KvAddress from, to;
  int64_t tokens;
};

// The steps of one block of `places.size()` rows. `key` and `value` are its layer's.
template <class E>
class BlockForward {
 public:
  BlockForward(const BlockShape& shape, const RopeTables& rope, std::span<const KvAddress> addresses,
               std::span<const SharedPrefix> shared = {})
      : s_(shape), rope_(rope), addresses_(addresses), shared_(shared), rows_(static_cast<int64_t>(addresses.size())) {}

  void attention(const Layer& layer, E* key, E* value, Activations& a, Scratch<E>& scratch) const;  // x -> attended
  void mlp(const Layer& layer, Activations& a, Scratch<E>& scratch) const;                          // -> gate_up
  void output(const Layer& layer, const Activations& a, Scratch<E>& scratch, at::Tensor& next) const;
  // f32 -> E, or f32; without a weight a copy
  void norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& out) const;
  void activation(const Activations& a, Scratch<E>& scratch) const;  // gate_up -> act

 private:
  void apply_rope_and_store_kv(const Layer& layer, E* key, E* value, Activations& a) const;
  void copy_shared_prefix(E* key, E* value) const;
  void attend(int64_t window, const E* key, const E* value, Activations& a) const;
  // sum = x + norm(y), or x + residual y, f32
  void add_apart(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, const at::Tensor& sum) const;
  const BlockShape& s_;
  const RopeTables& rope_;
  std::span<const KvAddress> addresses_;
  std::span<const SharedPrefix> shared_;
  int64_t rows_;
};

// The whole forward, for its backward.
struct SavedForBackward {
  Packed packed;
  Recompute recompute;
  std::vector<KvAddress> addresses;  // of packed sequences in
  std::vector<SharedPrefix> shared;  // of them, in
  at::Tensor key, value;             // room for one layer
  std::vector<Activations> blocks;   // what `recompute` says is kept
  Activations recomputed;            // buffers for recomputation
  at::Tensor last;                   // [P, D] before the final norm
};

// Adds the gradients of all parameters that are trained to their .grad, from d loss / d hidden [R, D].
// Frees what is kept on its way.
template <class E>
void native_backward(const BlockShape& shape, const Weights& weights, const RopeTables& rope, SavedForBackward& saved,
                     const at::Tensor& d_hidden);

}  // namespace ucas

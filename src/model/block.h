// One block of the model, as native.cpp, native_backward.cpp (from the bottom up) and aten.cpp run it. Every step is
// named here, every buffer stands here with its size.
//
//   x [R, D] ------------+
//   | norm               |   h = rms_norm(x, input_norm)
//   | project            |   qkv = h W_qkv (+ bias)
//   | place              |   q, k: normed per head where the family does, rotated; k, v to where rows find them
//   | attend             |   attended = softmax(q k / sqrt d) v over the row's sequence up to its own position
//   |                    |   (of a layer with a window: its last `window` keys)
//   | residual  <--------+   middle = x + attended W_out
//   middle [R, D] -------+
//   | norm               |   h = rms_norm(middle, post_norm)
//   | mlp                |   act = silu(h W_gate) * (h W_up)
//   | residual  <--------+   next x = middle + act W_down
//
// Legend: R rows (tokens), D width, H query heads, K key/value heads, d head width, F MLP width. On the native path
// buffers have P = R rounded up to a multiple of 16 rows: with such a count every row of a product is bit-equal
// whatever stands beside it. Rows that a product sums over are 0 beyond R.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "hf/model_config.h"
#include "model/rope.h"
#include "model/weights.h"

namespace ucas {

constexpr int64_t kRowAlign = 16;
inline int64_t aligned(int64_t rows) { return (rows + kRowAlign - 1) / kRowAlign * kRowAlign; }

inline float* data(const at::Tensor& x) { return x.data_ptr<float>(); }
inline at::Tensor rows_of(int64_t rows, int64_t width) { return at::empty({rows, width}, at::kFloat); }

// Rows that are worth a thread of their own when each is about `work` simple operations: some 20 us.
inline int64_t grain_of(int64_t work) { return work >= 131072 ? 1 : 131072 / (work > 0 ? work : 1); }

template <class PerRow>
void each_row(int64_t rows, int64_t work, PerRow per_row) {
  at::parallel_for(0, rows, grain_of(work), [&](int64_t begin, int64_t end) {
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
  int64_t stride = (d + 15) / 16 * 16;  // floats of a stored value row
  float eps = static_cast<float>(config.rms_norm_eps);
};

// The first key that a row at `position` sees through a layer's window; 0: no window.
inline int64_t first_key(int64_t window, int64_t position) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

// What the backward of a block needs of its forward. Where none follows, one set serves every block.
struct Activations {
  at::Tensor x;         // [P, D] input
  at::Tensor unnormed;  // [P, (H + K) d] q and k before their norm; only for backward, and only where there is one
  at::Tensor qkv;       // [P, N] as attention reads it
  at::Tensor attended;  // [P, H d]
  at::Tensor softmax;   // [P, H, 2] largest score and 1 / sum; only for backward
  at::Tensor middle;    // [P, D]
  at::Tensor gate_up;   // [P, 2F]
};
inline Activations allocate_block(const BlockShape& s, int64_t P, const at::Tensor& x, bool for_backward) {
  return {x,
          for_backward && s.config.family->qk_norm ? rows_of(P, s.query + s.key) : at::Tensor(),
          rows_of(P, s.N),
          rows_of(P, s.query),
          for_backward ? rows_of(P, 2 * s.H) : at::Tensor(),
          rows_of(P, s.D),
          rows_of(P, 2 * s.F)};
}

// What no block keeps: made again in backward where it is needed there.
struct Scratch {
  Scratch(const BlockShape& s, int64_t P) : h(rows_of(P, s.D)), act(rows_of(P, s.F)) {}
  at::Tensor h;    // [P, D] after a norm
  at::Tensor act;  // [P, F]
};

// The whole forward, for its backward.
struct Kept {
  Packed packed;
  std::vector<Activations> blocks;
  at::Tensor last;  // [P, D] before the final norm
};

// Gradients of all parameters that are trained, in the order of Weights::parameters, from d loss / d hidden [R, D].
// Frees what is kept on its way.
std::vector<at::Tensor> native_backward(const BlockShape& shape, const Weights& weights, const RopeTable& rope,
                                        Kept& kept, const at::Tensor& d_hidden);

}  // namespace ucas

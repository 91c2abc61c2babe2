// Backward of native.cpp, written by hand; activations that are cheap to make again (norms, SwiGLU) are not kept.
// Sums over rows run in fixed blocks, so they do not depend on the number of threads.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernels.h"
#include "model/native.h"

namespace ucas {

namespace {

constexpr int64_t kBlock = 64;  // rows summed before the blocks are added up

float* data(const at::Tensor& x) { return x.data_ptr<float>(); }
at::Tensor rows_of(int64_t rows, int64_t width) { return at::empty({rows, width}, at::kFloat); }

// visit(row, sum [width]) for every row, one `sum` a block of rows; gives the total [width].
template <class Visit>
at::Tensor sum_over_rows(int64_t rows, int64_t width, Visit visit) {
  int64_t blocks = (rows + kBlock - 1) / kBlock;
  at::Tensor partial = at::zeros({blocks, width}, at::kFloat), total = at::zeros({width}, at::kFloat);
  float* sums = data(partial);
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      for (int64_t row = block * kBlock; row < std::min(rows, (block + 1) * kBlock); ++row)
        visit(row, sums + block * width);
  });
  for (int64_t block = 0; block < blocks; ++block)
    kernels::table().add(data(partial) + block * width, width, data(total));
  return total;
}

class LayerBackward {
 public:
  LayerBackward(const Qwen2Config& config, const RopeTable& rope, const Kept& kept)
      : c_(config), rope_(rope), kept_(kept), rows_(static_cast<int64_t>(kept.token.size())), P_(aligned(rows_)) {
    h_ = rows_of(P_, c_.hidden_size);
    d_h_ = rows_of(P_, c_.hidden_size);
    act_ = rows_of(P_, c_.intermediate_size);
    d_act_ = rows_of(P_, c_.intermediate_size);
    d_gate_up_ = rows_of(P_, 2 * c_.intermediate_size);
    d_qkv_ = rows_of(P_, width());
    d_attended_ = rows_of(P_, query());
    for (const at::Tensor* x : {&h_, &act_, &d_gate_up_, &d_qkv_})
      std::fill_n(data(*x) + rows_ * x->size(1), (P_ - rows_) * x->size(1), 0.0f);
  }

  // dx [P, D] holds the gradient of the layer's output and becomes that of its input.
  void run(const Layer& w, const KeptLayer& kept, const at::Tensor& dx, std::vector<at::Tensor>& out) {
    const kernels::Table& kernel = kernels::table();
    int64_t F = c_.intermediate_size;
    // MLP
    at::mm_out(d_act_, dx, w.down.detach());
    const float *gate_up = data(kept.gate_up), *d_act = data(d_act_);
    float *act = data(act_), *d_gate_up_rows = data(d_gate_up_);
    each_row(20 * F, [&](int64_t i) {
      kernel.swiglu(gate_up + i * 2 * F, F, act + i * F);
      kernel.swiglu_backward(gate_up + i * 2 * F, d_act + i * F, F, d_gate_up_rows + i * 2 * F);
    });
    at::Tensor d_down = at::mm(dx.t(), act_);
    norm_again(kept.middle, w.post_norm);
    at::Tensor d_gate_up = at::mm(d_gate_up_.t(), h_);
    at::mm_out(d_h_, d_gate_up_, w.gate_up);
    at::Tensor d_post = norm_backward(kept.middle, w.post_norm, dx);
    // Attention
    at::mm_out(d_attended_, dx, w.o.detach());
    at::Tensor d_o = at::mm(dx.t(), kept.attended);
    attention(kept);
    const float* d_qkv_rows = data(d_qkv_);
    int64_t N = width();
    at::Tensor d_bias = sum_over_rows(rows_, N, [&](int64_t i, float* sum) { kernel.add(d_qkv_rows + i * N, N, sum); });
    norm_again(kept.x, w.input_norm);
    at::Tensor d_qkv = at::mm(d_qkv_.t(), h_);
    at::mm_out(d_h_, d_qkv_, w.qkv);
    at::Tensor d_input = norm_backward(kept.x, w.input_norm, dx);
    // In the order of Weights::parameters.
    int64_t q = query(), k = c_.num_key_value_heads * c_.head_dim;
    out = {d_input,
           d_qkv.narrow(0, 0, q),
           d_bias.narrow(0, 0, q),
           d_qkv.narrow(0, q, k),
           d_bias.narrow(0, q, k),
           d_qkv.narrow(0, q + k, k),
           d_bias.narrow(0, q + k, k),
           d_o,
           d_post,
           d_gate_up.narrow(0, 0, F),
           d_gate_up.narrow(0, F, F),
           d_down};
  }

  // Adds the gradient through a norm of x to dx, given d_h_; returns that of its weight.
  at::Tensor norm_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& dx) {
    int64_t D = c_.hidden_size;
    auto eps = static_cast<float>(c_.rms_norm_eps);
    const float *from = data(x), *w = data(weight), *d_out = data(d_h_);
    float* to = data(dx);
    const kernels::Table& kernel = kernels::table();
    return sum_over_rows(rows_, D, [&](int64_t i, float* sum) {
      kernel.rms_norm_backward(from + i * D, w, d_out + i * D, D, eps, to + i * D, sum);
    });
  }
  const at::Tensor& d_h() const { return d_h_; }

 private:
  int64_t query() const { return c_.num_attention_heads * c_.head_dim; }
  int64_t width() const { return query() + 2 * c_.num_key_value_heads * c_.head_dim; }

  template <class PerRow>
  void each_row(int64_t work, PerRow per_row) {
    at::parallel_for(0, rows_, grain_of(work), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) per_row(row);
    });
  }

  void norm_again(const at::Tensor& x, const at::Tensor& weight) {
    int64_t D = c_.hidden_size;
    auto eps = static_cast<float>(c_.rms_norm_eps);
    const float *from = data(x), *w = data(weight);
    float* to = data(h_);
    each_row(D, [&](int64_t i) { kernels::table().rms_norm(from + i * D, w, D, eps, to + i * D); });
  }

  // d_attended_ -> d_qkv_, one task for each sequence and key/value head.
  void attention(const KeptLayer& kept) {
    auto sequences = static_cast<int64_t>(kept_.begin.size()) - 1;
    int64_t K = c_.num_key_value_heads;
    at::parallel_for(0, sequences * K, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch;
      for (int64_t task = begin; task < end; ++task) attention_of(kept, task / K, task % K, scratch);
    });
    float* rows = data(d_qkv_);
    int64_t N = width();
    each_row(N, [&](int64_t i) {
      int64_t p = kept_.position[static_cast<size_t>(i)];
      kernels::table().rope_backward(rows + i * N, rope_.cosines(p), rope_.sines(p), c_.num_attention_heads + K,
                                     c_.head_dim);
    });
  }

  void attention_of(const KeptLayer& kept, int64_t sequence, int64_t head, std::vector<float>& scratch) {
    const kernels::Table& kernel = kernels::table();
    int64_t H = c_.num_attention_heads, K = c_.num_key_value_heads, d = c_.head_dim, stride = (d + 15) / 16 * 16;
    int64_t first = kept_.begin[static_cast<size_t>(sequence)];
    int64_t length = kept_.begin[static_cast<size_t>(sequence) + 1] - first, tiles = kernels::tiles_of(length);
    int64_t group = H / K, tile_size = tiles * 16 * d, row_size = length * stride;
    scratch.assign(static_cast<size_t>(2 * tile_size + 3 * row_size + 2 * group * (tiles * 16 + stride)), 0.0f);
    float *key = scratch.data(), *value = key + tile_size, *key_rows = value + tile_size;
    float *d_key = key_rows + row_size, *d_value = d_key + row_size, *rest = d_value + row_size;
    int64_t N = width();
    const float *qkv = data(kept.qkv), *attended = data(kept.attended), *d_attended = data(d_attended_);
    const float* norm = data(kept.norm);
    float* d_qkv = data(d_qkv_);
    for (int64_t j = 0; j < length; ++j) {
      const float *k = qkv + (first + j) * N + (H + head) * d, *v = k + K * d;
      float *k_tile = key + j / 16 * 16 * d + j % 16, *v_tile = value + j / 16 * 16 * d + j % 16;
      for (int64_t x = 0; x < d; ++x) {
        k_tile[x * 16] = k[x];
        v_tile[x * 16] = v[x];
        key_rows[j * stride + x] = k[x];
      }
    }
    float scale = 1.0f / std::sqrt(static_cast<float>(d));
    for (int64_t i = 0; i < length; ++i) {
      int64_t row = first + i, at = row * query() + head * group * d;
      kernel.attend_backward({group, i + 1, d, stride, scale, qkv + row * N + head * group * d, attended + at,
                              d_attended + at, norm + (row * H + head * group) * 2, key, value, key_rows, rest,
                              d_qkv + row * N + head * group * d, d_key, d_value});
    }
    for (int64_t j = 0; j < length; ++j) {
      float* to = d_qkv + (first + j) * N + (H + head) * d;
      std::copy_n(d_key + j * stride, d, to);
      std::copy_n(d_value + j * stride, d, to + K * d);
    }
  }

  const Qwen2Config& c_;
  const RopeTable& rope_;
  const Kept& kept_;
  int64_t rows_, P_;
  at::Tensor h_, d_h_, act_, d_act_, d_gate_up_, d_qkv_, d_attended_;
};

}  // namespace

std::vector<at::Tensor> native_backward(const Qwen2Config& config, const Weights& weights, const RopeTable& rope,
                                        Kept& kept, const at::Tensor& d_hidden) {
  c10::NoGradGuard no_grad;
  int64_t rows = d_hidden.size(0), D = config.hidden_size;
  LayerBackward layer(config, rope, kept);
  at::Tensor dx = at::zeros({aligned(rows), D}, at::kFloat);
  layer.d_h().narrow(0, 0, rows).copy_(d_hidden);
  at::Tensor d_norm = layer.norm_backward(kept.last, weights.norm, dx);
  std::vector<std::vector<at::Tensor>> of_layers(weights.layers.size());
  for (size_t l = weights.layers.size(); l-- > 0;) {
    layer.run(weights.layers[l], kept.layers[l], dx, of_layers[l]);
    kept.layers[l] = {};  // its memory serves the layers still to come
  }
  at::Tensor d_embed = at::zeros_like(weights.embed.detach());
  for (int64_t i = 0; i < rows; ++i)
    kernels::table().add(data(dx) + i * D, D, data(d_embed) + kept.token[static_cast<size_t>(i)] * D);
  std::vector<at::Tensor> gradients{d_embed};
  for (const auto& of_layer : of_layers) gradients.insert(gradients.end(), of_layer.begin(), of_layer.end());
  gradients.push_back(d_norm);
  if (gradients.size() < weights.parameters.size()) gradients.emplace_back();  // the head's own come from head_stats
  return gradients;
}

}  // namespace ucas

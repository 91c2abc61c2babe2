// Backward of native.cpp, written by hand, step by step from the bottom of block.h's diagram; activations that are
// cheap to make again (norms, SwiGLU) are not kept. What belongs to frozen parameters is not computed.
// Sums over rows run in fixed blocks, so they do not depend on the number of threads.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernels.h"
#include "model/block.h"

namespace ucas {

namespace {

constexpr int64_t kSumRows = 64;  // rows summed before these sums are added up

// visit(row, sum [width]) for every row, one `sum` a block of rows; gives the total [width].
template <class Visit>
at::Tensor sum_over_rows(int64_t rows, int64_t width, Visit visit) {
  int64_t blocks = (rows + kSumRows - 1) / kSumRows;
  at::Tensor partial = at::zeros({blocks, width}, at::kFloat), total = at::zeros({width}, at::kFloat);
  float* sums = data(partial);
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      for (int64_t row = block * kSumRows; row < std::min(rows, (block + 1) * kSumRows); ++row)
        visit(row, sums + block * width);
  });
  for (int64_t block = 0; block < blocks; ++block)
    kernels::table().add(data(partial) + block * width, width, data(total));
  return total;
}

// One for all blocks: its buffers are used again.
class BlockBackward {
 public:
  BlockBackward(const BlockShape& shape, const RopeTable& rope, const Packed& packed)
      : s_(shape),
        rope_(rope),
        packed_(packed),
        rows_(packed.token.size()),
        again_(s_, aligned(rows_)),
        d_(s_, aligned(rows_)),
        d_gate_up_(rows_of(aligned(rows_), 2 * s_.F)),
        d_qkv_(rows_of(aligned(rows_), s_.N)),
        d_attended_(rows_of(aligned(rows_), s_.query)) {
    for (const at::Tensor* x : {&again_.h, &again_.act, &d_gate_up_, &d_qkv_})
      std::fill_n(data(*x) + rows_ * x->size(1), (aligned(rows_) - rows_) * x->size(1), 0.0f);
  }

  // dx [P, D] holds the gradient of the block's output and becomes that of its input.
  void run(const Layer& layer, int64_t window, const Activations& a, const at::Tensor& dx, Gradients& out) {
    mlp(layer, a, dx, out);
    norm_again(a.middle, layer.post_norm);
    layer.gate_up.backward_weight(again_.h, d_gate_up_, {}, out);
    layer.gate_up.backward_input(d_gate_up_, d_.h);
    norm(a.middle, layer.post_norm, dx, out);

    layer.out.backward_input(dx, d_attended_);
    layer.out.backward_weight(a.attended, dx, {}, out);
    attend(a, window);
    place_heads(layer, a, out);
    norm_again(a.x, layer.input_norm);
    layer.qkv.backward_weight(again_.h, d_qkv_, bias(layer.qkv), out);
    layer.qkv.backward_input(d_qkv_, d_.h);
    norm(a.x, layer.input_norm, dx, out);
  }

  // Adds the gradient through a norm of x to dx, given d_h().
  void norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& dx, Gradients& out) {
    const kernels::Table& kernel = kernels::table();
    const int64_t D = s_.D;
    const float *from = data(x), *w = data(weight), *d_out = data(d_.h);
    float* to = data(dx);
    out.of(weight) = sum_over_rows(rows_, D, [&](int64_t i, float* sum) {
      kernel.rms_norm_backward(from + i * D, w, d_out + i * D, D, s_.eps, to + i * D, sum);
    });
  }
  const at::Tensor& d_h() const { return d_.h; }

 private:
  // dx -> d_gate_up_
  void mlp(const Layer& layer, const Activations& a, const at::Tensor& dx, Gradients& out) {
    const kernels::Table& kernel = kernels::table();
    const int64_t F = s_.F;
    layer.down.backward_input(dx, d_.act);
    const float *gate_up = data(a.gate_up), *d_act = data(d_.act);
    float *act = data(again_.act), *d_gate_up = data(d_gate_up_);
    each_row(rows_, 20 * F, [&](int64_t i) {
      kernel.swiglu(gate_up + i * 2 * F, F, act + i * F);
      kernel.swiglu_backward(gate_up + i * 2 * F, d_act + i * F, F, d_gate_up + i * 2 * F);
    });
    layer.down.backward_weight(again_.act, dx, {}, out);
  }

  void norm_again(const at::Tensor& x, const at::Tensor& weight) {
    const int64_t D = s_.D;
    const float *from = data(x), *w = data(weight);
    float* to = data(again_.h);
    each_row(rows_, D, [&](int64_t i) { kernels::table().rms_norm(from + i * D, w, D, s_.eps, to + i * D); });
  }

  at::Tensor bias(const Linear& qkv) {
    if (!qkv.bias.defined() || !qkv.trains()) return {};
    const float* rows = data(d_qkv_);
    return sum_over_rows(rows_, s_.N, [&](int64_t i, float* sum) { kernels::table().add(rows + i * s_.N, s_.N, sum); });
  }

  // d_qkv_ as attention read q and k -> as the product gave them.
  void place_heads(const Layer& layer, const Activations& a, Gradients& out) {
    const kernels::Table& kernel = kernels::table();
    float* rows = data(d_qkv_);
    each_row(rows_, s_.N, [&](int64_t i) {
      int64_t p = packed_.position[i];
      kernel.rope_backward(rows + i * s_.N, rope_.cosines(p), rope_.sines(p), s_.H + s_.K, s_.d);
    });
    if (!layer.q_norm.defined()) return;
    out.of(layer.q_norm) = head_norm(a, layer.q_norm, 0, s_.H);
    out.of(layer.k_norm) = head_norm(a, layer.k_norm, s_.H, s_.K);
  }

  // The norm of each of `count` heads from `first` on, in place; gives the gradient of its weight.
  at::Tensor head_norm(const Activations& a, const at::Tensor& weight, int64_t first, int64_t count) {
    const kernels::Table& kernel = kernels::table();
    const float *w = data(weight), *x = data(a.unnormed) + first * s_.d;
    float* rows = data(d_qkv_) + first * s_.d;
    return sum_over_rows(rows_, s_.d, [&](int64_t i, float* sum) {
      std::vector<float> d_x(s_.d);
      for (int64_t head = 0; head < count; ++head) {
        float* d_out = rows + i * s_.N + head * s_.d;
        std::fill(d_x.begin(), d_x.end(), 0.0f);
        kernel.rms_norm_backward(x + i * (s_.query + s_.key) + head * s_.d, w, d_out, s_.d, s_.eps, d_x.data(), sum);
        std::copy(d_x.begin(), d_x.end(), d_out);
      }
    });
  }

  // d_attended_ -> d_qkv_, one task for each sequence and key/value head.
  void attend(const Activations& a, int64_t window) {
    auto sequences = static_cast<int64_t>(packed_.begin.size()) - 1;
    at::parallel_for(0, sequences * s_.K, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch;
      for (int64_t task = begin; task < end; ++task) attend_head(a, window, task / s_.K, task % s_.K, scratch);
    });
  }

  void attend_head(const Activations& a, int64_t window, int64_t sequence, int64_t head, std::vector<float>& scratch) {
    const kernels::Table& kernel = kernels::table();
    const int64_t H = s_.H, K = s_.K, d = s_.d, N = s_.N, group = s_.group, stride = s_.stride;
    int64_t first = packed_.begin[sequence], length = packed_.begin[sequence + 1] - first;
    int64_t tiles = kernels::tiles_of(length), tile_size = tiles * 16 * d, row_size = length * stride;
    scratch.assign(2 * tile_size + 3 * row_size + 2 * group * (tiles * 16 + stride), 0.0f);
    float *key = scratch.data(), *value = key + tile_size, *key_rows = value + tile_size;
    float *d_key = key_rows + row_size, *d_value = d_key + row_size, *rest = d_value + row_size;
    const float *qkv = data(a.qkv), *attended = data(a.attended), *d_attended = data(d_attended_);
    const float* softmax = data(a.softmax);
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
      int64_t row = first + i, at = row * s_.query + head * group * d;
      kernel.attend_backward({group, i + 1, d, stride, scale, qkv + row * N + head * group * d, attended + at,
                              d_attended + at, softmax + (row * H + head * group) * 2, key, value, key_rows, rest,
                              d_qkv + row * N + head * group * d, d_key, d_value, first_key(window, i)});
    }
    for (int64_t j = 0; j < length; ++j) {
      float* to = d_qkv + (first + j) * N + (H + head) * d;
      std::copy_n(d_key + j * stride, d, to);
      std::copy_n(d_value + j * stride, d, to + K * d);
    }
  }

  const BlockShape& s_;
  const RopeTable& rope_;
  const Packed& packed_;
  int64_t rows_;
  Scratch again_, d_;  // what forward had there, made again, and its gradient
  at::Tensor d_gate_up_, d_qkv_, d_attended_;
};

}  // namespace

std::vector<at::Tensor> native_backward(const BlockShape& shape, const Weights& weights, const RopeTable& rope,
                                        Kept& kept, const at::Tensor& d_hidden) {
  c10::NoGradGuard no_grad;
  const int64_t rows = d_hidden.size(0), D = shape.D;
  Gradients gradients;
  BlockBackward block(shape, rope, kept.packed);
  at::Tensor dx = at::zeros({aligned(rows), D}, at::kFloat);
  block.d_h().narrow(0, 0, rows).copy_(d_hidden);
  block.norm(kept.last, weights.norm, dx, gradients);
  for (size_t l = weights.layers.size(); l-- > 0;) {
    block.run(weights.layers[l], shape.config.window(l), kept.blocks[l], dx, gradients);
    kept.blocks[l] = {};  // its memory serves the blocks still to come
  }
  if (weights.embed.requires_grad()) {
    at::Tensor d_embed = at::zeros_like(weights.embed.detach());
    for (int64_t i = 0; i < rows; ++i)
      kernels::table().add(data(dx) + i * D, D, data(d_embed) + kept.packed.token[i] * D);
    gradients.of(weights.embed) = d_embed;
  }
  std::vector<at::Tensor> list;  // an untied head's own comes from Head::stats
  for (const NamedTensor& parameter : weights.parameters) list.push_back(gradients.of(parameter.tensor));
  return list;
}

}  // namespace ucas

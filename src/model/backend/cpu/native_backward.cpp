// Backward of native.cpp, written by hand, step by step from the bottom of block.h's diagram; activations that are
// cheap to make again (norms, SwiGLU) are not kept. What belongs to frozen parameters is not computed.
// Sums over rows run in fixed blocks, so they do not depend on the number of threads.
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "model/backend/block.h"

namespace ucas {

namespace {

constexpr int64_t kSumRows = 64;  // rows summed before these sums are added up

// visit(row, sum [width]) for every row, one `sum` a block of rows; gives the total [width].
template <class Visit>
at::Tensor sum_over_rows(int64_t rows, int64_t width, Visit visit) {
  int64_t blocks = (rows + kSumRows - 1) / kSumRows;
  at::Tensor partial = at::zeros({blocks, width}, at::kFloat), total = at::zeros({width}, at::kFloat);
  float* sums = data(partial);
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      for (int64_t row = block * kSumRows; row < std::min(rows, (block + 1) * kSumRows); ++row)
        visit(row, sums + block * width);
  });
  for (int64_t block = 0; block < blocks; ++block)
    kernels::table().add(data(partial) + block * width, width, data(total));
  return total;
}

// One for all blocks: its buffers are used again. Gradients are added where the parameters keep them.
template <class E>
class BlockBackward {
 public:
  BlockBackward(const BlockShape& shape, const RopeTables& rope, SavedForBackward& saved)
      : s_(shape),
        packed_(saved.packed),
        rope_(rope),
        saved_(saved),
        forward_(shape, rope, saved.addresses, saved.shared),
        rows_(static_cast<int64_t>(packed_.token.size())),
        P_(aligned(rows_)),
        scratch_(s_, P_, rows_),
        d_(s_, P_, rows_),
        d_gate_up_(rows_of<E>(P_, 2 * s_.F)),
        d_qkv_(rows_of<E>(P_, s_.N)),
        d_attended_(rows_of<E>(P_, s_.query)) {
    clear_padding<E>(d_gate_up_, rows_);
    clear_padding<E>(d_qkv_, rows_);
    if (s_.adds_apart || !std::is_same_v<E, float>) {
      d_out_ = rows_of<E>(P_, s_.D);
      clear_padding<E>(d_out_, rows_);
    }
    followed_.resize(packed_.sequences());
    for (int64_t s = 0; s < packed_.sequences(); ++s) {
      const int64_t prefix = packed_.prefix_of(s);
      if (prefix < 0) continue;
      if (followed_[prefix].empty())
        followed_[prefix].push_back({prefix, std::exchange(shared_rows_, shared_rows_ + packed_.rows_of(prefix))});
      followed_[prefix].push_back({s, std::exchange(shared_rows_, shared_rows_ + packed_.rows_of(prefix))});
    }
    d_shared_ = rows_of(shared_rows_ * s_.K, 2 * s_.d);
  }

  // dx [P, D] f32 holds the gradient of the block's output and becomes that of its input.
  void run(const Layer& layer, const Activations& saved, const at::Tensor& dx) {
    const Activations a = recompute(layer, saved);
    mlp(layer, a, dx);
    forward_.norm(a.middle, layer.mlp_norm, scratch_.h);
    at::Tensor d_low = layer.gate_up.backward_low(d_gate_up_);
    layer.gate_up.backward_weight(scratch_.h, d_gate_up_, d_low, {});
    layer.gate_up.backward_input(d_gate_up_, d_low, d_.h);
    norm(a.middle, layer.mlp_norm, dx);

    const at::Tensor d_middle = before_norm(dx, a.attention_output, layer.attention_output_norm);
    d_low = layer.out.backward_low(d_middle);
    layer.out.backward_input(d_middle, d_low, d_attended_);
    layer.out.backward_weight(a.attended, d_middle, d_low, {});
    attend(a, layer.window);
    apply_rope_and_store_kv(layer, a);
    forward_.norm(a.x, layer.input_norm, scratch_.h);
    d_low = layer.qkv.backward_low(d_qkv_);
    layer.qkv.backward_weight(scratch_.h, d_qkv_, d_low, bias(layer.qkv));
    layer.qkv.backward_input(d_qkv_, d_low, d_.h);
    norm(a.x, layer.input_norm, dx);
  }

  // Adds the gradient through a norm of x to dx, given d_h().
  void norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& dx) {
    const kernels::Table& kernel = kernels::table();
    const int64_t D = s_.D;
    E* d_out = data<E>(d_.h);
    float* to = data(dx);
    if (!weight.defined()) {
      each_row(rows_, D, [&](int64_t i) { kernel.add(open_row(d_out + i * D, D, thread_scratch(D)), D, to + i * D); });
      return;
    }
    const at::Tensor scale = s_.norm_scale(weight);
    const float *from = data(x), *w = data(scale);
    at::Tensor d_weight = sum_over_rows(rows_, D, [&](int64_t i, float* sum) {
      const float* d_row = open_row(d_out + i * D, D, thread_scratch(D));
      kernel.rms_norm_backward(from + i * D, w, d_row, D, s_.eps, to + i * D, sum);
    });
    if (weight.requires_grad()) gradient_of(weight).add_(d_weight);
  }
  const at::Tensor& d_h() const { return d_.h; }

 private:
  // What of the block's forward was not kept.
  Activations recompute(const Layer& layer, const Activations& saved) {
    if (saved_.recompute == Recompute::none) return saved;
    Activations a = saved;
    if (saved_.recompute == Recompute::block) {
      a = saved_.recomputed;
      a.x = saved.x;
      forward_.attention(layer, data<E>(saved_.key), data<E>(saved_.value), a, scratch_);
    } else {
      a.take_mlp_from(saved_.recomputed);
    }
    forward_.mlp(layer, a, scratch_);
    return a;
  }

  // The residual stream's gradient as GEMMs read it, through the multiplier of what was added.
  at::Tensor as_kept(const at::Tensor& dx) {
    if (std::is_same_v<E, float> && s_.residual == 1) return dx;
    const int64_t D = s_.D;
    E* kept = data<E>(d_out_);
    const float* from = data(dx);
    each_row(P_, D, [&](int64_t i) {
      float* to = fresh_row(kept + i * D, thread_scratch(D));
      for (int64_t k = 0; k < D; ++k) to[k] = s_.residual * from[i * D + k];
      close_row(kept + i * D, D, to);
    });
    return d_out_;
  }

  // dx, the gradient of what was added to the residual stream, as that of what the GEMM before gave: through the norm
  // of its output y where the family has one.
  at::Tensor before_norm(const at::Tensor& dx, const at::Tensor& y, const at::Tensor& weight) {
    if (!s_.spec.norms_after) return as_kept(dx);
    const kernels::Table& kernel = kernels::table();
    const int64_t D = s_.D;
    const at::Tensor scale = s_.norm_scale(weight);
    const float *w = data(scale), *d_sum = data(dx);
    E *from = data<E>(y), *to = data<E>(d_out_);
    const at::Tensor d_weight = sum_over_rows(rows_, D, [&](int64_t i, float* sum) {
      float* room = thread_scratch(2 * D);
      const float* row = open_row(from + i * D, D, room);
      float* d_row = fresh_row(to + i * D, room + D);
      std::fill_n(d_row, D, 0.0f);
      kernel.rms_norm_backward(row, w, d_sum + i * D, D, s_.eps, d_row, sum);
      close_row(to + i * D, D, d_row);
    });
    if (weight.requires_grad()) gradient_of(weight).add_(d_weight);
    return d_out_;
  }

  // The MLP's output before its norm, where that is not kept.
  void recompute_output(const Layer& layer, const Activations& a) {
    if (!s_.spec.norms_after || saved_.recompute == Recompute::none) return;
    forward_.activation(a, scratch_);
    layer.down.forward(scratch_.act, a.mlp_output);
  }

  // dx -> d_gate_up_
  void mlp(const Layer& layer, const Activations& a, const at::Tensor& dx) {
    const int64_t F = s_.F;
    const auto forward = gate_forward(s_);
    const auto backward = gate_backward(s_);
    recompute_output(layer, a);
    const at::Tensor d_out = before_norm(dx, a.mlp_output, layer.mlp_output_norm);
    const at::Tensor d_low = layer.down.backward_low(d_out);
    layer.down.backward_input(d_out, d_low, d_.act);
    E *gate_up = data<E>(a.gate_up), *d_act = data<E>(d_.act);
    E *act = data<E>(scratch_.act), *d_gate_up = data<E>(d_gate_up_);
    each_row(rows_, 20 * F, [&](int64_t i) {
      float* room = thread_scratch(6 * F);
      const float* row = open_row(gate_up + i * 2 * F, 2 * F, room);
      float* to = fresh_row(act + i * F, room + 2 * F);
      forward(row, F, to);
      close_row(act + i * F, F, to);
      const float* d_row = open_row(d_act + i * F, F, room + 3 * F);
      float* d_to = fresh_row(d_gate_up + i * 2 * F, room + 4 * F);
      backward(row, d_row, F, d_to);
      close_row(d_gate_up + i * 2 * F, 2 * F, d_to);
    });
    layer.down.backward_weight(scratch_.act, d_out, d_low, {});
  }

  at::Tensor bias(const Linear& qkv) {
    if (!qkv.trains_bias()) return {};
    E* rows = data<E>(d_qkv_);
    return sum_over_rows(rows_, s_.N, [&](int64_t i, float* sum) {
      kernels::table().add(open_row(rows + i * s_.N, s_.N, thread_scratch(s_.N)), s_.N, sum);
    });
  }

  // d_qkv_ as attention read q and k -> as the GEMM gave them.
  void apply_rope_and_store_kv(const Layer& layer, const Activations& a) {
    const kernels::Table& kernel = kernels::table();
    E* rows = data<E>(d_qkv_);
    const int64_t width = s_.query + s_.key;
    const RopeTable& rope = rope_.of(layer.local_rope);
    each_row(rows_, s_.N, [&](int64_t i) {
      int64_t p = packed_.position[i];
      float* row = open_row(rows + i * s_.N, width, thread_scratch(width));
      kernel.rope_backward(row, rope.cosines(p), rope.sines(p), s_.H + s_.K, s_.d);
      close_row(rows + i * s_.N, width, row);
    });
    if (!layer.q_norm.defined()) return;
    head_norm(a, layer.q_norm, 0, s_.query);
    head_norm(a, layer.k_norm, s_.query, s_.key);
  }

  // The norm of each head, or of all together, of the `width` numbers from `first` on, in place.
  void head_norm(const Activations& a, const at::Tensor& weight, int64_t first, int64_t width) {
    const kernels::Table& kernel = kernels::table();
    const int64_t d = weight.size(0), count = width / d;
    const at::Tensor scale = s_.norm_scale(weight);
    const float* w = data(scale);
    E *x = data<E>(a.unnormed) + first, *rows = data<E>(d_qkv_) + first;
    at::Tensor d_weight = sum_over_rows(rows_, d, [&](int64_t i, float* sum) {
      float *room = thread_scratch(2 * width + d), *d_x = room + 2 * width;
      const float* of = open_row(x + i * (s_.query + s_.key), width, room);
      float* d_row = open_row(rows + i * s_.N, width, room + width);
      for (int64_t head = 0; head < count; ++head) {
        std::fill_n(d_x, d, 0.0f);
        kernel.rms_norm_backward(of + head * d, w, d_row + head * d, d, s_.eps, d_x, sum);
        std::copy_n(d_x, d, d_row + head * d);
      }
      close_row(rows + i * s_.N, width, d_row);
    });
    if (weight.requires_grad()) gradient_of(weight).add_(d_weight);
  }

  // d_attended_ -> d_qkv_, one task for each sequence and key/value head. What a shared key or value gets from those
  // who see it is summed in their order.
  void attend(const Activations& a, int64_t window) {
    parallel_for(packed_.sequences() * s_.K, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch;
      for (int64_t task = begin; task < end; ++task) attend_head(a, window, task / s_.K, task % s_.K, scratch);
    });
    parallel_for(packed_.sequences() * s_.K, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) add_shared(task / s_.K, task % s_.K);
    });
  }

  // Where a sequence leaves its part of the gradient of shared keys and values, [rows of the prefix][d of k, d of v].
  struct Part {
    int64_t sequence, first;  // row in d_shared_, times K
  };
  float* part_of(const Part& part, int64_t prefix, int64_t head) {
    return data(d_shared_) + (part.first * s_.K + head * packed_.rows_of(prefix)) * 2 * s_.d;
  }
  float* own_part(int64_t sequence, int64_t prefix, int64_t head) {
    for (const Part& part : followed_[prefix])
      if (part.sequence == sequence) return part_of(part, prefix, head);
    return nullptr;
  }

  void add_shared(int64_t prefix, int64_t head) {
    const std::vector<Part>& parts = followed_[prefix];
    if (parts.empty()) return;
    const int64_t rows = packed_.rows_of(prefix), d = s_.d;
    float* sum = part_of(parts[0], prefix, head);
    for (size_t i = 1; i < parts.size(); ++i) kernels::table().add(part_of(parts[i], prefix, head), rows * 2 * d, sum);
    for (int64_t j = 0; j < rows; ++j)
      put_key_and_value(packed_.begin[prefix] + j, head, sum + j * 2 * d, sum + (j * 2 + 1) * d);
  }

  void put_key_and_value(int64_t row, int64_t head, const float* d_key, const float* d_value) {
    E* to = data<E>(d_qkv_) + row * s_.N + (s_.H + head) * s_.d;
    float* room = thread_scratch(s_.d);
    for (auto [from, part] : {std::pair(d_key, to), std::pair(d_value, to + s_.K * s_.d)}) {
      std::copy_n(from, s_.d, fresh_row(part, room));
      close_row(part, s_.d, from);
    }
  }

  void attend_head(const Activations& a, int64_t window, int64_t sequence, int64_t head, std::vector<float>& scratch) {
    const int64_t H = s_.H, K = s_.K, d = s_.d, N = s_.N, group = s_.group, stride = s_.stride, width = group * d;
    const int64_t prefix = packed_.prefix_of(sequence), before = packed_.rows_before(sequence);
    const int64_t first = packed_.begin[sequence] - before,
                  length = before + packed_.rows_of(sequence);  // first: of i = 0
    const int64_t shared_first = prefix < 0 ? 0 : packed_.begin[prefix];
    const int64_t tiles = kernels::tiles_of(length), tile_size = tiles * 16 * d, row_size = length * stride;
    const int64_t together = 16 * group * stride;
    scratch.assign(
        2 * tile_size + 3 * row_size + 4 * together + 32 * group + width + kernels::weights_together(group, length),
        0.0f);
    float *key = scratch.data(), *value = key + tile_size, *key_rows = value + tile_size;
    float *d_key = key_rows + row_size, *d_value = d_key + row_size;
    float *q = d_value + row_size, *out = q + together, *d_out = out + together, *d_q = d_out + together;
    float *norm = d_q + together, *room = norm + 32 * group, *weights = room + width;
    E *qkv = data<E>(a.qkv), *attended = data<E>(a.attended), *d_attended = data<E>(d_attended_);
    const float* softmax = data(a.softmax);
    E* d_qkv = data<E>(d_qkv_);
    for (int64_t j = 0; j < length; ++j) {
      E* k_row = qkv + (j < before ? shared_first + j : first + j) * N + (H + head) * d;
      const int64_t tile = j / 16 * 16 * d + j % 16;
      const float* k = open_row(k_row, d, room);
      for (int64_t x = 0; x < d; ++x) key[tile + x * 16] = key_rows[j * stride + x] = k[x];
      const float* v = open_row(k_row + K * d, d, room);
      for (int64_t x = 0; x < d; ++x) value[tile + x * 16] = v[x];
    }
    // The heads of a row [group, d] to and from [group, stride]; beyond d stays 0.
    const auto take = [&](E* row, float* to) {
      const float* heads = open_row(row, width, room);
      for (int64_t h = 0; h < group; ++h) std::copy_n(heads + h * d, d, to + h * stride);
    };
    const auto put = [&](const float* from, E* row) {
      float* heads = fresh_row(row, room);
      for (int64_t h = 0; h < group; ++h) std::copy_n(from + h * stride, d, heads + h * d);
      close_row(row, width, heads);
    };
    for (int64_t i = before, count = 0; i < length; i += count) {
      count = std::min(length - i, kernels::queries_together(group, i));
      for (int64_t n = 0; n < count; ++n) {
        const int64_t row = first + i + n, at = row * s_.query + head * width, to = n * group * stride;
        take(qkv + row * N + head * width, q + to);
        take(attended + at, out + to);
        take(d_attended + at, d_out + to);
        std::copy_n(softmax + (row * H + head * group) * 2, 2 * group, norm + n * 2 * group);
      }
      kernels::table().attend_backward({count, group, i + 1, window, d, stride, s_.scale, q, out, d_out, norm, key,
                                        value, key_rows, weights, d_q, d_key, d_value});
      for (int64_t n = 0; n < count; ++n) put(d_q + n * group * stride, d_qkv + (first + i + n) * N + head * width);
    }
    const bool is_followed = !followed_[sequence].empty();
    const int64_t shared = is_followed ? length : before;
    float* part = shared == 0 ? nullptr : own_part(sequence, is_followed ? sequence : prefix, head);
    for (int64_t j = 0; j < shared; ++j) {
      std::copy_n(d_key + j * stride, d, part + j * 2 * d);
      std::copy_n(d_value + j * stride, d, part + (j * 2 + 1) * d);
    }
    for (int64_t j = shared; j < length; ++j)
      put_key_and_value(first + j, head, d_key + j * stride, d_value + j * stride);
  }

  const BlockShape& s_;
  const Packed& packed_;
  const RopeTables& rope_;
  const SavedForBackward& saved_;
  const BlockForward<E> forward_;
  std::vector<std::vector<Part>> followed_;  // [sequences] of one that others continue: it and they
  int64_t shared_rows_ = 0;
  at::Tensor d_shared_;
  int64_t rows_, P_;
  Scratch<E> scratch_, d_;  // what forward had there, recomputed, and its gradient
  at::Tensor d_gate_up_, d_qkv_, d_attended_;
  at::Tensor d_out_;  // [P, D] the residual stream's gradient in E
};

}  // namespace

template <class E>
void native_backward(const BlockShape& shape, const Weights& weights, const RopeTables& rope, SavedForBackward& saved,
                     const at::Tensor& d_hidden) {
  c10::NoGradGuard no_grad;
  const int64_t rows = d_hidden.size(0), D = shape.D;
  BlockBackward<E> block(shape, rope, saved);
  at::Tensor dx = at::zeros({aligned(rows), D}, at::kFloat);
  block.d_h().narrow(0, 0, rows).copy_(shape.hidden_scale == 1 ? d_hidden : d_hidden * shape.hidden_scale);
  block.norm(saved.last, weights.norm, dx);
  each_block_backward(weights, saved.blocks, block, dx);
  if (!weights.embed.parameter.requires_grad()) return;
  if (const float scale = shape.embedding_scale(kTypeOf<E>); scale != 1) dx.mul_(scale);
  float* d_embed = data(gradient_of(weights.embed.parameter));
  for (int64_t i = 0; i < rows; ++i) kernels::table().add(data(dx) + i * D, D, d_embed + saved.packed.token[i] * D);
}

template void native_backward<float>(const BlockShape&, const Weights&, const RopeTables&, SavedForBackward&,
                                     const at::Tensor&);
template void native_backward<Bf16>(const BlockShape&, const Weights&, const RopeTables&, SavedForBackward&,
                                    const at::Tensor&);

}  // namespace ucas

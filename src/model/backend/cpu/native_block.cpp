// The steps of a block on the CPU, in the order of block.h.

#include <algorithm>
#include <cmath>

#include "model/backend/block.h"

namespace ucas {

template <class E>
void BlockForward<E>::norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& out) const {
  const kernels::Table& kernel = kernels::table();
  const int64_t D = s_.D;
  const at::Tensor scale = s_.norm_scale(weight);
  const float *from = data(x), *w = scale.defined() ? data(scale) : nullptr;
  const auto one = [&](const float* row, float* to) {
    w != nullptr ? kernel.rms_norm(row, w, D, s_.eps, to) : static_cast<void>(std::copy_n(row, D, to));
  };
  if (out.scalar_type() == at::kFloat) {
    float* to = data(out);
    each_row(rows_, D, [&](int64_t i) { one(from + i * D, to + i * D); });
    return;
  }
  E* to = data<E>(out);
  each_row(rows_, D, [&](int64_t i) {
    float* row = fresh_row(to + i * D, thread_scratch(D));
    one(from + i * D, row);
    close_row(to + i * D, D, row);
  });
}

template <class E>
void BlockForward<E>::add_apart(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                                const at::Tensor& sum) const {
  const kernels::Table& kernel = kernels::table();
  const int64_t D = s_.D;
  const at::Tensor scale = s_.norm_scale(weight);
  const float *base = data(x), *w = scale.defined() ? data(scale) : nullptr;
  E* from = data<E>(y);
  float* to = data(sum);
  each_row(rows_, 2 * D, [&](int64_t i) {
    float *room = thread_scratch(2 * D), *normed = room + D;
    const float* row = open_row(from + i * D, D, room);
    if (w != nullptr) kernel.rms_norm(row, w, D, s_.eps, normed);
    for (int64_t k = 0; w == nullptr && k < D; ++k) normed[k] = s_.residual * row[k];
    std::copy_n(base + i * D, D, to + i * D);
    kernel.add(normed, D, to + i * D);
  });
  clear_padding<float>(sum, rows_);
}

// Makes q and k what attention reads, and stores k and v.
template <class E>
void BlockForward<E>::apply_rope_and_store_kv(const Layer& layer, E* key, E* value, Activations& a) const {
  const kernels::Table& kernel = kernels::table();
  const BlockShape& s = s_;
  const float* bias = layer.qkv.bias.defined() ? data(layer.qkv.bias) : nullptr;
  at::Tensor q_scale, k_scale;
  if (layer.q_norm.defined()) {
    q_scale = s.norm_scale(layer.q_norm);
    k_scale = s.norm_scale(layer.k_norm);
  }
  const float* q_norm = q_scale.defined() ? data(q_scale) : nullptr;
  const float* k_norm = k_scale.defined() ? data(k_scale) : nullptr;
  const int64_t q_width = s.spec.qk_norm_whole ? s.query : s.d, k_width = s.spec.qk_norm_whole ? s.key : s.d;
  const RopeTable& rope = rope_.of(layer.local_rope);
  E *qkv = data<E>(a.qkv), *unnormed = a.unnormed.defined() ? data<E>(a.unnormed) : nullptr;
  each_row(rows_, 4 * s.N, [&](int64_t i) {
    const KvAddress& address = addresses_[i];
    E* kept = qkv + i * s.N;
    float* row = open_row(kept, s.N, thread_scratch(s.N));
    if (bias != nullptr) kernel.add(bias, s.N, row);
    if (unnormed != nullptr) {
      close_row(kept, s.query + s.key, row);
      std::copy_n(kept, s.query + s.key, unnormed + i * (s.query + s.key));
    }
    for (int64_t x = 0; q_norm != nullptr && x < s.query + s.key; x += x < s.query ? q_width : k_width)
      kernel.rms_norm(row + x, x < s.query ? q_norm : k_norm, x < s.query ? q_width : k_width, s.eps, row + x);
    kernel.rope(row, rope.cosines(address.position), rope.sines(address.position), s.H + s.K, s.d);
    close_row(kept, s.N, row);
    const E *k = kept + s.query, *v = k + s.key;
    for (int64_t head = 0; head < s.K; ++head) {
      const E* from = k + head * s.d;
      E* tile = key + address.key_at(head, address.position, s.d) + address.position % 16;
      for (int64_t x = 0; x < s.d; ++x) tile[x * 16] = from[x];
      E* to = value + address.value_at(head, address.position, s.stride);
      std::copy_n(v + head * s.d, s.d, to);
      std::fill(to + s.d, to + s.stride, E{});
    }
  });
}

template <class E>
void BlockForward<E>::copy_shared_prefix(E* key, E* value) const {
  const int64_t d = s_.d;
  parallel_for(static_cast<int64_t>(shared_.size()) * s_.K, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const auto& [from, to, tokens] = shared_[task / s_.K];
      const int64_t head = task % s_.K, rest = tokens - to.shared;
      const E* keys = key + from.key_at(head, to.shared, d);
      E* own = key + to.key_at(head, to.shared, d);
      for (int64_t x = 0; x < d; ++x) std::copy_n(keys + x * 16, rest, own + x * 16);
      std::copy_n(value + from.value_at(head, to.shared, s_.stride), rest * s_.stride,
                  value + to.value_at(head, to.shared, s_.stride));
    }
  });
}

void attend_kernel(const kernels::Attend<float>& a) { kernels::table().attend(a); }
void attend_kernel(const kernels::Attend<Bf16>& a) { kernels::table().attend_bf16(a); }

// Row i sees the keys of its sequence up to its own position, of a layer with a window the last ones of them. A
// key/value head's rows that follow each other are taken together.
template <class E>
void BlockForward<E>::attend(int64_t window, const E* key, const E* value, Activations& a) const {
  const BlockShape& s = s_;
  E *qkv = data<E>(a.qkv), *to = data<E>(a.attended);
  float* softmax = a.softmax.defined() ? data(a.softmax) : nullptr;
  const int64_t width = s.group * s.d;  // of the query heads that share a key/value head
  int64_t longest = 0;
  for (const KvAddress& address : addresses_) longest = std::max(longest, address.position);
  parallel_for(s.K * rows_, grain_of((128 + longest) * width), [&](int64_t begin, int64_t end) {
    std::vector<float> weight, q(16 * width), out(16 * s.group * s.stride), norm(16 * s.group * 2), room(width);
    for (int64_t item = begin, count = 0; item < end; item += count) {
      const int64_t head = item / rows_, i = item % rows_;
      const KvAddress& address = addresses_[i];
      const int64_t most = std::min({end - item, rows_ - i, kernels::queries_together(s.group, address.position)});
      for (count = 1; count < most && addresses_[i + count].follows(addresses_[i + count - 1]);) ++count;
      weight.resize(count * s.group * 16 * kernels::tiles_of(address.position + 1));
      for (int64_t n = 0; n < count; ++n) {
        std::copy_n(open_row(qkv + (i + n) * s.N + head * width, width, room.data()), width, q.data() + n * width);
      }
      attend_kernel({count, s.group, address.position + 1, window, s.d, s.stride, s.scale, q.data(),
                     key + address.key_at(head, address.shared, s.d),
                     value + address.value_at(head, address.shared, s.stride), weight.data(), out.data(), norm.data(),
                     address.shared, key + address.shared_key + head * address.shared_key_head,
                     value + address.shared_value + head * address.shared_value_head});
      for (int64_t n = 0; n < count; ++n) {
        E* row = to + (i + n) * s.query + head * width;
        float* sums = fresh_row(row, room.data());
        const float* from = out.data() + n * s.group * s.stride;
        for (int64_t h = 0; h < s.group; ++h) std::copy_n(from + h * s.stride, s.d, sums + h * s.d);
        close_row(row, width, sums);
        if (softmax == nullptr) continue;
        std::copy_n(norm.data() + n * s.group * 2, s.group * 2, softmax + ((i + n) * s.H + head * s.group) * 2);
      }
    }
  });
}

template <class E>
void BlockForward<E>::attention(const Layer& layer, E* key, E* value, Activations& a, Scratch<E>& scratch) const {
  norm(a.x, layer.input_norm, scratch.h);
  layer.qkv.forward(scratch.h, a.qkv);
  apply_rope_and_store_kv(layer, key, value, a);
  copy_shared_prefix(key, value);
  attend(layer.window, key, value, a);
}

template <class E>
void BlockForward<E>::mlp(const Layer& layer, Activations& a, Scratch<E>& scratch) const {
  if (s_.adds_apart) {
    layer.out.forward(a.attended, a.attention_output);
    add_apart(a.x, a.attention_output, layer.attention_output_norm, a.middle);
  } else {
    layer.out.forward_onto(a.x, a.attended, a.middle);
  }
  norm(a.middle, layer.mlp_norm, scratch.h);
  layer.gate_up.forward(scratch.h, a.gate_up);
}

template <class E>
void BlockForward<E>::activation(const Activations& a, Scratch<E>& scratch) const {
  const int64_t F = s_.F;
  const auto gate = gate_forward(s_);
  E *gate_up = data<E>(a.gate_up), *act = data<E>(scratch.act);
  each_row(rows_, 8 * F, [&](int64_t i) {
    float* room = thread_scratch(3 * F);
    const float* row = open_row(gate_up + i * 2 * F, 2 * F, room);
    float* to = fresh_row(act + i * F, room + 2 * F);
    gate(row, F, to);
    close_row(act + i * F, F, to);
  });
}

template <class E>
void BlockForward<E>::output(const Layer& layer, const Activations& a, Scratch<E>& scratch, at::Tensor& next) const {
  activation(a, scratch);
  if (s_.adds_apart) {
    layer.down.forward(scratch.act, a.mlp_output);
    add_apart(a.middle, a.mlp_output, layer.mlp_output_norm, next);
  } else {
    layer.down.forward_onto(a.middle, scratch.act, next);
  }
}

template class BlockForward<float>;
template class BlockForward<Bf16>;

}  // namespace ucas

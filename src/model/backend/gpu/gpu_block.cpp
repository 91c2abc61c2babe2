#include "model/backend/gpu/gpu_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_embedding_bag_forward_only.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

Bf16* bf16_data(const at::Tensor& x) { return x.defined() ? data<Bf16>(x) : nullptr; }
float* f32_data(const at::Tensor& x) { return x.defined() ? x.data_ptr<float>() : nullptr; }

// q, k and v as [.., heads, d] inside the rows of qkv; k and v as sequences see them.
std::array<at::Tensor, 3> heads_of(const BlockShape& s, const GpuRows& rows, const at::Tensor& qkv) {
  at::Tensor kv = qkv.narrow(1, s.query, 2 * s.key);
  if (rows.key_row.defined()) kv = kv.index_select(0, rows.key_row);
  const auto part = [&](const at::Tensor& of, int64_t first, int64_t heads) {
    return of.narrow(1, first, heads * s.d).view({of.size(0), heads, s.d});
  };
  return {part(qkv, 0, s.H), part(kv, 0, s.K), part(kv, s.key, s.K)};
}

// The gradient of each row's keys or values, of that of what sequences saw: a sum in f32, in their order.
at::Tensor sum_seen(const GpuRows& rows, const at::Tensor& d_seen) {
  if (!rows.key_row.defined()) return d_seen;
  return std::get<0>(at::_embedding_bag_forward_only(d_seen.flatten(1), rows.seen, rows.first_seen,
                                                     /*scale_grad_by_freq=*/false, /*mode=*/0, /*sparse=*/false,
                                                     /*per_sample_weights=*/{}, /*include_last_offset=*/true));
}

double scale_of(const BlockShape& s) { return 1.0 / std::sqrt(static_cast<double>(s.d)); }

std::optional<int64_t> window_left(int64_t window) {
  return window > 0 ? std::optional<int64_t>(window - 1) : std::nullopt;
}
std::optional<int64_t> window_right(int64_t window) { return window > 0 ? std::optional<int64_t>(0) : std::nullopt; }

}  // namespace

gpu::Stream Kernels::stream() const { return device.is_cpu() ? nullptr : stream_of(device); }

Emulation& emulation() {
  static Emulation of_tests;
  return of_tests;
}

Kernels kernels_of(at::Device device) {
  UCAS_CHECK(!device.is_cpu() || emulation().table != nullptr, "GPU kernels run on a GPU");
  return {device.is_cpu() ? *emulation().table : kernel_table(device), device};
}

at::Tensor on_device(std::span<const int32_t> values, at::Device device) {
  const auto n = static_cast<int64_t>(values.size());
  const at::Tensor host = device.is_cpu() ? at::empty({n}, at::kInt) : pinned({n}, at::kInt);
  std::ranges::copy(values, host.mutable_data_ptr<int32_t>());
  return device.is_cpu() ? host : host.to(device, at::kInt, /*non_blocking=*/true);  // the host does not wait
}

GpuRows::GpuRows(const Packed& packed, at::Device device)
    : rows(static_cast<int64_t>(packed.token.size())), padded(aligned(rows)), begin(packed.begin) {
  std::vector<int32_t> tokens = packed.token, positions = packed.position;
  for (int64_t i = rows; i < padded; ++i) {
    tokens.push_back(0);
    positions.push_back(static_cast<int32_t>(i - rows));
  }
  if (padded > rows) begin.push_back(padded);
  for (size_t i = 0; i + 1 < begin.size(); ++i) most_rows = std::max(most_rows, begin[i + 1] - begin[i]);
  token = on_device(tokens, device);
  position = on_device(positions, device);
  cumulative = cumulative_keys = on_device(std::vector<int32_t>(begin.begin(), begin.end()), device);
  begin_keys = begin;
  longest = most_rows;
  if (std::ranges::any_of(packed.after, [](int64_t from) { return from >= 0; })) share(packed, device);
}

void GpuRows::share(const Packed& packed, at::Device device) {
  std::vector<int32_t> keys, first(padded + 1), places;
  begin_keys = {0};
  const auto see = [&](int64_t sequence) {
    for (int64_t row = begin[sequence]; row < begin[sequence + 1]; ++row) keys.push_back(static_cast<int32_t>(row));
  };
  for (int64_t s = 0; s + 1 < static_cast<int64_t>(begin.size()); ++s) {
    const int64_t before = s < packed.sequences() ? packed.prefix_of(s) : -1;
    if (before >= 0) see(before);
    see(s);
    begin_keys.push_back(static_cast<int64_t>(keys.size()));
    longest = std::max(longest, begin_keys[s + 1] - begin_keys[s]);
  }
  for (const int32_t row : keys) ++first[row + 1];
  for (int64_t row = 0; row < padded; ++row) first[row + 1] += first[row];
  places.resize(keys.size());
  std::vector<int32_t> next = first;
  for (size_t key = 0; key < keys.size(); ++key) places[next[keys[key]]++] = static_cast<int32_t>(key);
  cumulative_keys = on_device(std::vector<int32_t>(begin_keys.begin(), begin_keys.end()), device);
  key_row = on_device(keys, device);
  seen = on_device(places, device);
  first_seen = on_device(first, device);
}

void GpuRope::reach(int64_t position) {
  if (cos_.defined() && position < cos_.size(0)) return;
  const int64_t rows = std::max<int64_t>(position + 1, cos_.defined() ? 2 * cos_.size(0) : 1024);
  table_.reach(rows - 1);
  const auto copy = [&](const float* from) {
    const at::Tensor host = at::from_blob(const_cast<float*>(from), {rows, table_.half()}, at::kFloat);
    return device_.is_cpu() ? host.clone() : host.to(device_);
  };
  if (cos_.defined()) outgrown_.insert(outgrown_.end(), {cos_, sin_});
  cos_ = copy(table_.cosines(0));
  sin_ = copy(table_.sines(0));
}

at::Tensor GpuBlock::embed(const at::Tensor& token, const at::Tensor& table) const {
  const at::Tensor x = f32(s_.D);
  kernels_.table.embed(kernels_.stream(), {P_, s_.D, token.const_data_ptr<int32_t>(), bf16_data(table), f32_data(x)});
  return x;
}

void GpuBlock::add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& w, const at::Tensor& sum,
                        const at::Tensor& h) const {
  const bool narrow = h.scalar_type() == at::kBFloat16;
  kernels_.table.add_norm(kernels_.stream(), {.rows = P_,
                                              .width = s_.D,
                                              .eps = s_.eps,
                                              .x = f32_data(x),
                                              .y = bf16_data(y),
                                              .w = f32_data(w),
                                              .sum = f32_data(sum),
                                              .out = narrow ? bf16_data(h) : nullptr,
                                              .out_float = narrow ? nullptr : f32_data(h)});
}

at::Tensor GpuBlock::norm(const at::Tensor& x, const at::Tensor& w) const {
  const at::Tensor h = bf16(s_.D);
  add_norm(x, {}, w, {}, h);
  return h;
}

void GpuBlock::project(const Layer& layer, const at::Tensor& h, Activations& a, const GpuStore& store) const {
  a.qkv = bf16(s_.N);
  layer.qkv.forward(h, a.qkv);
  kernels_.table.apply_rope_and_store_kv(kernels_.stream(), {.rows = P_,
                                                             .H = s_.H,
                                                             .K = s_.K,
                                                             .d = s_.d,
                                                             .eps = s_.eps,
                                                             .qkv = bf16_data(a.qkv),
                                                             .bias = f32_data(layer.qkv.bias),
                                                             .q_norm = f32_data(layer.q_norm),
                                                             .k_norm = f32_data(layer.k_norm),
                                                             .cosines = rope_.cosines(),
                                                             .sines = rope_.sines(),
                                                             .position = position_.const_data_ptr<int32_t>(),
                                                             .unnormed = bf16_data(a.unnormed),
                                                             .slot = store.slot,
                                                             .cache = store.cache});
}

void GpuBlock::attend(const GpuRows& rows, int64_t window, Activations& a) const {
  const std::array<at::Tensor, 3> heads = heads_of(s_, rows, a.qkv);
  if (kernels_.device.is_cpu()) {
    a.attended = emulation().attend(s_, rows, window, heads);
    return;
  }
  // Where a sequence has more keys than rows, its last row sees the last key: the ones before are of its prefix.
  const auto [out, softmax, seed, offset, mask] = at::_flash_attention_forward(
      heads[0], heads[1], heads[2], rows.cumulative, rows.cumulative_keys, rows.most_rows, rows.longest, 0.0,
      /*is_causal=*/true, /*return_debug_mask=*/false, scale_of(s_), window_left(window), window_right(window));
  a.attended = out.view({P_, s_.query});
  a.softmax = softmax;
}

std::array<at::Tensor, 3> GpuBlock::attend_backward(const GpuRows& rows, int64_t window, const Activations& a,
                                                    const at::Tensor& d_attended) const {
  const std::array<at::Tensor, 3> heads = heads_of(s_, rows, a.qkv);
  const auto of_rows = [&](const at::Tensor& d_q, const at::Tensor& d_k, const at::Tensor& d_v) {
    return std::array<at::Tensor, 3>{d_q, sum_seen(rows, d_k), sum_seen(rows, d_v)};
  };
  if (kernels_.device.is_cpu()) {
    const auto [d_q, d_k, d_v] = emulation().attend_backward(s_, rows, window, heads, d_attended);
    return of_rows(d_q, d_k, d_v);
  }
  const auto per_head = [&](const at::Tensor& x) { return x.view({P_, s_.H, s_.d}); };
  const at::Tensor state = at::empty({2}, rows.token.options().dtype(at::kUInt64)),
                   unused = at::empty({}, state.options());
  const auto [d_q, d_k, d_v] = at::_flash_attention_backward(
      per_head(d_attended), heads[0], heads[1], heads[2], per_head(a.attended), a.softmax, rows.cumulative,
      rows.cumulative_keys, rows.most_rows, rows.longest, 0.0, /*is_causal=*/true, state, unused, scale_of(s_),
      window_left(window), window_right(window));
  return of_rows(d_q, d_k, d_v);
}

at::Tensor GpuBlock::activation(const Activations& a) const {
  const at::Tensor act = bf16(s_.F);
  kernels_.table.swiglu(kernels_.stream(), {P_, s_.F, bf16_data(a.gate_up), bf16_data(act)});
  return act;
}

void GpuBlock::activation_backward(const Activations& a, const at::Tensor& d_act, const at::Tensor& d_gate_up,
                                   const at::Tensor& act) const {
  kernels_.table.swiglu_backward(
      kernels_.stream(), {P_, s_.F, bf16_data(a.gate_up), bf16_data(d_act), bf16_data(d_gate_up), bf16_data(act)});
}

void GpuBlock::add_rows(const at::Tensor& rows, const at::Tensor& sum, Onto onto) const {
  const bool narrow = rows.scalar_type() == at::kBFloat16;
  kernels_.table.add_parts(kernels_.stream(), {.parts = rows.size(0),
                                               .width = rows.size(1),
                                               .stride = rows.stride(0),
                                               .part = narrow ? nullptr : f32_data(rows),
                                               .part_narrow = narrow ? bf16_data(rows) : nullptr,
                                               .before = onto == Onto::itself ? f32_data(sum) : nullptr,
                                               .sum = f32_data(sum)});
}

void GpuBlock::norm_backward(const at::Tensor& x, const at::Tensor& w, const at::Tensor& d_out, const at::Tensor& dx,
                             const at::Tensor& dx_narrow) const {
  const bool narrow = d_out.scalar_type() == at::kBFloat16;
  at::Tensor dw;
  if (w.requires_grad()) dw = at::empty({gpu::norm_parts(P_), s_.D}, dx.options());
  kernels_.table.norm_backward(kernels_.stream(), {.rows = P_,
                                                   .width = s_.D,
                                                   .eps = s_.eps,
                                                   .x = f32_data(x),
                                                   .w = f32_data(w),
                                                   .d_out = narrow ? bf16_data(d_out) : nullptr,
                                                   .d_out_float = narrow ? nullptr : f32_data(d_out),
                                                   .dx = f32_data(dx),
                                                   .dx_narrow = bf16_data(dx_narrow),
                                                   .dw = f32_data(dw)});
  if (dw.defined()) add_rows(dw, gradient_of(w), Onto::itself);
}

void GpuBlock::heads_backward(const Layer& layer, const Activations& a, const std::array<at::Tensor, 3>& d_heads,
                              const at::Tensor& d_qkv) const {
  at::Tensor dw;
  const auto trains = [](const at::Tensor& w) { return w.defined() && w.requires_grad(); };
  if (trains(layer.q_norm) || trains(layer.k_norm)) dw = at::empty({P_, 2, s_.d}, a.x.options());
  kernels_.table.apply_rope_and_store_kv_backward(kernels_.stream(), {.rows = P_,
                                                                      .H = s_.H,
                                                                      .K = s_.K,
                                                                      .d = s_.d,
                                                                      .eps = s_.eps,
                                                                      .d_q = bf16_data(d_heads[0]),
                                                                      .d_k = bf16_data(d_heads[1]),
                                                                      .d_v = bf16_data(d_heads[2]),
                                                                      .q_norm = f32_data(layer.q_norm),
                                                                      .k_norm = f32_data(layer.k_norm),
                                                                      .unnormed = bf16_data(a.unnormed),
                                                                      .cosines = rope_.cosines(),
                                                                      .sines = rope_.sines(),
                                                                      .position = position_.const_data_ptr<int32_t>(),
                                                                      .d_qkv = bf16_data(d_qkv),
                                                                      .dw = f32_data(dw)});
  if (trains(layer.q_norm)) add_rows(dw.select(1, 0), gradient_of(layer.q_norm), Onto::itself);
  if (trains(layer.k_norm)) add_rows(dw.select(1, 1), gradient_of(layer.k_norm), Onto::itself);
}

void gpu_attention(const GpuBlock& block, const Layer& layer, const GpuRows& rows, const at::Tensor& h, Activations& a,
                   const GpuStore& store) {
  const BlockShape& s = block.shape();
  if (s.config.family->block.qk_norm) a.unnormed = block.bf16(s.query + s.key);
  block.project(layer, h, a, store);
  block.attend(rows, layer.window, a);
}

at::Tensor gpu_mlp(const GpuBlock& block, const Layer& layer, Activations& a, bool wants_output) {
  const BlockShape& s = block.shape();
  const at::Tensor y = block.bf16(s.D), h = block.bf16(s.D);
  layer.out.forward(a.attended, y);
  a.middle = block.f32(s.D);
  block.add_norm(a.x, y, layer.mlp_norm, a.middle, h);
  a.gate_up = block.bf16(2 * s.F);
  layer.gate_up.forward(h, a.gate_up);
  if (!wants_output) return {};
  layer.down.forward(block.activation(a), y);
  return y;
}

}  // namespace ucas

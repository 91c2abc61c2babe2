// Every kernel of the table once on the host and once on what is tried, with the same random inputs.
#include "support/engine/gpu_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "support/engine/gpu_kernels_side.h"
#include "support/gpu_emulation.h"

namespace ucas::testing {

namespace {

struct CheckShape {
  int64_t rows, D, F, H, K, d, V;
  int64_t length;  // of a slot
  int64_t slots;
  int64_t window;
  bool norms;  // of heads
  int64_t blocks() const { return (length + gpu::kBlockTokens - 1) / gpu::kBlockTokens; }
  int64_t N() const { return (H + 2 * K) * d; }
};
constexpr CheckShape kFew[] = {{37, 896, 200, 7, 1, 64, 5000, 700, 3, 0, false},
                               {1, 136, 136, 3, 1, 8, 131, 300, 2, 100, true}};
constexpr CheckShape kMore[] = {{37, 136, 1000, 14, 2, 64, 2048, 701, 5, 300, true},
                                {18, 4096, 4864, 12, 2, 128, 9000, 1100, 3, 0, true},
                                {3, 8192, 264, 16, 1, 256, 7, 520, 2, 0, false},
                                {5, 1024, 48, 5, 5, 80, 2049, 513, 2, 257, false}};
constexpr CheckShape kLarge = {16384, 1536, 8960, 12, 2, 128, 151936, 1024, 17, 0, false};

// Which bodies a model runs is decided by its heads; rows are short, so that every training can afford it.
CheckShape heads_of(const ModelConfig& c) {
  int64_t window = 0;
  for (size_t layer = 0; layer < c.windows.size(); ++layer) window = std::max(window, c.window(layer));
  return {5,
          std::min<int64_t>(c.hidden_size, 256),
          136,
          c.num_attention_heads,
          c.num_key_value_heads,
          c.head_dim,
          131,
          1100,
          2,
          window,
          c.family->block.qk_norm};
}

// Places of rows: no two the same.
std::vector<int32_t> positions_of(const CheckShape& s) {
  std::vector<int32_t> position;
  for (int64_t r = 0; r < s.rows; ++r)
    position.push_back(static_cast<int32_t>(((r + 1) * 19 - 20 + s.length) % s.length));
  return position;
}
std::vector<int32_t> slots_of(const CheckShape& s) {
  std::vector<int32_t> slot;
  for (int64_t r = 0; r < s.rows; ++r) slot.push_back(static_cast<int32_t>((r / s.length + r) % s.slots));
  return slot;
}
std::vector<int32_t> tokens_of(int64_t rows, int64_t vocab) {
  std::vector<int32_t> token;
  for (int64_t r = 0; r < rows; ++r) token.push_back(static_cast<int32_t>(r == 0 ? vocab - 1 : r * 977 % vocab));
  return token;
}
// Blocks in no order, with something of other layers in between.
gpu::Cache cache_of(CheckSide& side, const CheckShape& s, Bf16* layer) {
  const auto count = static_cast<int32_t>(s.slots * s.blocks());
  std::vector<int32_t> table(count);
  for (int32_t i = 0; i < count; ++i) table[i] = (i + count / 2) % count;
  std::reverse(table.begin() + count / 2, table.end());
  return {layer, gpu::block_numbers(s.K, s.d) + 16, side.ids(table), s.blocks()};
}
int64_t cache_numbers(const CheckShape& s) { return s.slots * s.blocks() * (gpu::block_numbers(s.K, s.d) + 16); }

// --- a call of each kernel ------------------------------------------------------------------------------------------

void try_embed(CheckSide& side, const CheckShape& s) {
  gpu::Embed a{.rows = s.rows, .width = s.D};
  a.token = side.ids(tokens_of(s.rows, s.V));
  a.table = side.narrow(s.V * s.D);
  a.x = side.out_floats(s.rows * s.D, 0);
  side.call(s.rows * s.D * 6, [&](const gpu::Table& t, gpu::Stream stream) { t.embed(stream, a); });
}

void try_add_norm(CheckSide& side, const CheckShape& s) {
  const int64_t n = s.rows * s.D;
  gpu::AddNorm a{.rows = s.rows, .width = s.D, .eps = kEpsOfCheck};
  a.x = side.floats(n);
  a.y = side.narrow(n);
  a.w = side.floats(s.D, 0.2f, 1);
  a.sum = side.out_floats(n);
  a.out = side.out_narrow(n);
  a.out_float = side.timed() ? nullptr : side.out_floats(n);
  side.call(n * 12, [&](const gpu::Table& t, gpu::Stream stream) { t.add_norm(stream, a); });
}

void try_norm_backward(CheckSide& side, const CheckShape& s) {
  const int64_t n = s.rows * s.D;
  gpu::NormBackward a{.rows = s.rows, .width = s.D, .eps = kEpsOfCheck};
  a.x = side.floats(n);
  a.w = side.floats(s.D, 0.2f, 1);
  a.d_out = side.narrow(n);
  a.d_out_float = nullptr;
  a.dx = side.changed_floats(n);
  a.dx_narrow = side.out_narrow(n);
  a.dw = side.out_floats(gpu::norm_parts(s.rows) * s.D);
  side.call(n * 16, [&](const gpu::Table& t, gpu::Stream stream) { t.norm_backward(stream, a); });
}

void try_apply_rope_and_store_kv(CheckSide& side, const CheckShape& s) {
  gpu::RopeAndStoreKv a{.rows = s.rows, .H = s.H, .K = s.K, .d = s.d, .eps = kEpsOfCheck};
  a.qkv = side.changed_narrow(s.rows * s.N());
  a.bias = s.norms ? nullptr : side.floats(s.N(), 0.5f);
  a.q_norm = s.norms ? side.floats(s.d, 0.2f, 1) : nullptr;
  a.k_norm = s.norms ? side.floats(s.d, 0.2f, 1) : nullptr;
  a.cosines = side.floats(s.length * s.d / 2);
  a.sines = side.floats(s.length * s.d / 2);
  a.position = side.ids(positions_of(s));
  a.unnormed = s.norms ? side.out_narrow(s.rows * (s.H + s.K) * s.d) : nullptr;
  a.slot = side.ids(slots_of(s));
  a.cache = cache_of(side, s, side.out_narrow(cache_numbers(s)));
  side.call(s.rows * (2 * s.N() * 2 + 2 * s.K * s.d * 2 + s.d * 4),
            [&](const gpu::Table& t, gpu::Stream stream) { t.apply_rope_and_store_kv(stream, a); });
}

void try_apply_rope_and_store_kv_backward(CheckSide& side, const CheckShape& s) {
  gpu::RopeAndStoreKvBackward a{.rows = s.rows, .H = s.H, .K = s.K, .d = s.d, .eps = kEpsOfCheck};
  a.d_q = side.narrow(s.rows * s.H * s.d);
  a.d_k = side.narrow(s.rows * s.K * s.d);
  a.d_v = side.narrow(s.rows * s.K * s.d);
  a.q_norm = s.norms ? side.floats(s.d, 0.2f, 1) : nullptr;
  a.k_norm = s.norms ? side.floats(s.d, 0.2f, 1) : nullptr;
  a.unnormed = s.norms ? side.narrow(s.rows * (s.H + s.K) * s.d) : nullptr;
  a.cosines = side.floats(s.length * s.d / 2);
  a.sines = side.floats(s.length * s.d / 2);
  a.position = side.ids(positions_of(s));
  a.d_qkv = side.out_narrow(s.rows * s.N());
  a.dw = s.norms ? side.out_floats(s.rows * 2 * s.d) : nullptr;
  side.call(s.rows * (2 * s.N() * 2 + s.d * 4),
            [&](const gpu::Table& t, gpu::Stream stream) { t.apply_rope_and_store_kv_backward(stream, a); });
}

// The device's own exponential and quotient are others beyond 2^126: gates of which the sigmoid is 0 and 1 are
// compared, too.
std::vector<float> gate_scales(const CheckSide& side) {
  return side.timed() ? std::vector<float>{2} : std::vector<float>{2, 60, 6000};
}

void try_swiglu(CheckSide& side, const CheckShape& s) {
  for (const float scale : gate_scales(side)) {
    gpu::Swiglu a{.rows = s.rows, .width = s.F};
    a.gate_up = side.narrow(s.rows * 2 * s.F, scale);
    a.out = side.out_narrow(s.rows * s.F);
    side.call(s.rows * s.F * 6, [&](const gpu::Table& t, gpu::Stream stream) { t.swiglu(stream, a); });
  }
}

void try_swiglu_backward(CheckSide& side, const CheckShape& s) {
  for (const float scale : gate_scales(side)) {
    gpu::SwigluBackward a{.rows = s.rows, .width = s.F};
    a.gate_up = side.narrow(s.rows * 2 * s.F, scale);
    a.d_out = side.narrow(s.rows * s.F);
    a.d_gate_up = side.out_narrow(s.rows * 2 * s.F);
    a.act = side.out_narrow(s.rows * s.F);
    side.call(s.rows * s.F * 12, [&](const gpu::Table& t, gpu::Stream stream) { t.swiglu_backward(stream, a); });
  }
}

void try_add_parts(CheckSide& side, const CheckShape& s) {
  gpu::AddParts a{.parts = side.timed() ? s.rows : s.rows * 40, .width = s.D, .stride = s.D + 8};
  if (s.norms) {
    a.part = side.floats(a.parts * a.stride);
  } else {
    a.part_narrow = side.narrow(a.parts * a.stride);
  }
  a.sum = side.changed_floats(s.D);
  a.before = a.sum;
  side.call(a.parts * a.width * (s.norms ? 4 : 2),
            [&](const gpu::Table& t, gpu::Stream stream) { t.add_parts(stream, a); });
}

// Logits of a head lie with others between the rows; a large vocabulary has fewer rows.
int64_t rows_of_head(const CheckShape& s) { return std::min<int64_t>(s.rows, 1024); }
// Rows that begin at multiples of 16 bytes, and others.
int64_t gap_of(const CheckSide& side, const CheckShape& s) { return side.timed() ? 0 : s.norms ? 5 : 8; }
constexpr float kInverseTemperature = 1.25f;

void show_tiles(CheckSide& side, const at::Tensor& of_tile) {  // [n, 4] of 8 bytes: gpu::TileStats
  static_assert(sizeof(gpu::TileStats) == 32);
  side.show(of_tile.view(at::kFloat).view({-1, 8}).select(1, 0), kOfFloat);
  for (int64_t i = 1; i < 4; ++i) side.show(of_tile.view({-1, 4}).select(1, i), kOfFloat);
}

void try_head_stats_of_tiles(CheckSide& side, const CheckShape& s) {
  const int64_t R = rows_of_head(s), gap = gap_of(side, s);
  gpu::HeadStatsOfTiles a{.rows = R, .columns = s.V, .stride = s.V + gap};
  a.first_tile = 0;
  a.tiles = gpu::head_tiles(s.V);
  a.inverse_temperature = kInverseTemperature;
  a.logits = side.floats(R * a.stride, 3);
  a.target = side.ids(tokens_of(R, s.V));
  const at::Tensor of_tile = side.room(R * a.tiles * 4, at::kDouble).zero_();
  show_tiles(side, of_tile);
  a.of_tile = static_cast<gpu::TileStats*>(of_tile.mutable_data_ptr());
  a.chosen = side.out_floats(R, 0);
  side.call(R * s.V * 4, [&](const gpu::Table& t, gpu::Stream stream) { t.head_stats_of_tiles(stream, a); });
}

std::vector<gpu::TileStats> random_tiles(int64_t count) {
  CheckNoise noise(7);
  std::vector<gpu::TileStats> tiles;
  for (int64_t i = 0; i < count; ++i) {
    const float largest = 8 + noise.next();
    const double sum = 20 + 8 * noise.next();
    tiles.push_back({largest, 0, sum, -sum * (2 + noise.next()), 100.0 * noise.next()});
  }
  return tiles;
}

void try_head_stats_of_rows(CheckSide& side, const CheckShape& s) {
  gpu::HeadStatsOfRows a{.rows = s.rows, .tiles = gpu::head_tiles(s.V), .vocab = s.V};
  a.inverse_temperature = kInverseTemperature;
  a.of_tile = side.bytes(random_tiles(s.rows * a.tiles));
  a.chosen = side.floats(s.rows, 3);
  for (float** out : {&a.logprob, &a.entropy, &a.confidence, &a.margin, &a.lse}) *out = side.out_floats(s.rows);
  side.call(s.rows * (a.tiles * 32 + 24),
            [&](const gpu::Table& t, gpu::Stream stream) { t.head_stats_of_rows(stream, a); });
}

void try_head_gradient(CheckSide& side, const CheckShape& s) {
  const int64_t columns = std::min(s.V, gpu::kHeadTile), gap = gap_of(side, s);
  gpu::HeadGradient a{.rows = s.rows, .columns = columns, .stride = columns + gap, .first_column = gpu::kHeadTile};
  a.inverse_temperature = kInverseTemperature;
  a.inverse_vocab = 1e-4f;
  std::vector<int32_t> target = tokens_of(s.rows, 3 * columns);  // of other tiles, too
  target[0] = static_cast<int32_t>(gpu::kHeadTile + columns - 1);
  a.target = side.ids(target);
  a.lse = side.floats(s.rows, 0.5f, 5);
  a.entropy = side.floats(s.rows, 0.5f, 4);
  a.g = side.floats(s.rows);
  a.e = side.floats(s.rows);
  a.u = side.floats(s.rows);
  const at::Tensor logits = side.numbers(s.rows * a.stride, 3);
  a.logits = logits.data_ptr<float>();
  const at::Tensor halves = logits.view({s.rows, a.stride}).view(at::kBFloat16);
  side.show(halves.narrow(1, 0, columns), kOfBf16);
  side.show(halves.view(at::kShort).narrow(1, columns, 2 * a.stride - columns), 0);  // is left
  side.call(s.rows * columns * 6, [&](const gpu::Table& t, gpu::Stream stream) { t.head_gradient(stream, a); });
}

// A draw is tried by itself: the tiles that it reads are the host's own.
at::Tensor tiles_of_host(CheckSide& side, const at::Tensor& logits, gpu::HeadStatsOfTiles a) {
  const at::Tensor there = side.room(a.rows * a.tiles * 4, at::kDouble);
  const at::Tensor here = side.timed() ? logits : logits.cpu(),
                   of_tile = at::empty_like(there, here.options().dtype(at::kDouble));
  a.logits = here.const_data_ptr<float>();
  a.of_tile = static_cast<gpu::TileStats*>(of_tile.mutable_data_ptr());
  if (side.timed()) {
    side.kernels().table.head_stats_of_tiles(side.kernels().stream(), a);
  } else {
    gpu::host().head_stats_of_tiles(nullptr, a);
  }
  return there.copy_(of_tile);
}

// A row in three is greedy.
void try_sample_token(CheckSide& side, const CheckShape& s) {
  const int64_t R = side.timed() ? rows_of_head(s) : 38, tiles = gpu::head_tiles(s.V);
  const int64_t stride = s.V + gap_of(side, s);
  gpu::SampleToken a{
      .rows = R, .vocab = s.V, .stride = stride, .tiles = tiles, .inverse_temperature = kInverseTemperature};
  a.run = side.bytes(std::vector<gpu::SamplerRun>{{23, 6}});
  const at::Tensor logits = side.numbers(R * stride, 3);
  a.logits = logits.const_data_ptr<float>();
  gpu::HeadStatsOfTiles of{.rows = R, .columns = s.V, .stride = stride, .first_tile = 0, .tiles = tiles};
  of.inverse_temperature = kInverseTemperature;
  const at::Tensor at_temperature = tiles_of_host(side, logits, of);
  of.inverse_temperature = 1;
  const at::Tensor greedy = tiles_of_host(side, logits, of);
  a.of_tile = static_cast<const gpu::TileStats*>(at_temperature.const_data_ptr());
  a.of_tile_greedy = static_cast<const gpu::TileStats*>(greedy.const_data_ptr());
  std::vector<gpu::SamplerState> state;
  for (uint32_t r = 0; r < static_cast<uint32_t>(R); ++r) state.push_back({r / 7, r % 7, 11, r % 3 == 0 ? 1u : 0u});
  a.state = side.bytes(state);
  if (s.norms) {  // cuts of every kind, and all of them
    a.top_k = s.H == 3 || s.H == 12 ? 20 : 0;
    a.top_p = s.H != 12 ? 0.9 : 1;
    a.min_p = s.H != 14 ? 0.02 : 0;
  }
  const at::Tensor sampled = side.room(R * 6, at::kInt).zero_().view({R, 6});
  a.sampled = static_cast<gpu::DeviceSampledToken*>(sampled.mutable_data_ptr());
  const at::Tensor token = side.room(R, at::kInt).zero_(), position = side.room(R, at::kInt).zero_();
  a.token = token.data_ptr<int32_t>();
  a.position = position.data_ptr<int32_t>();
  side.call(R * (tiles * 32 + std::min(s.V, gpu::kHeadTile) * 4),
            [&](const gpu::Table& t, gpu::Stream stream) { t.sample(stream, a); });
  const auto column = [](const at::Tensor& x) { return x.to(at::kFloat).view({-1, 1}); };
  side.show_rows(at::cat({column(sampled.select(1, 0).contiguous()), sampled.view(at::kFloat).narrow(1, 1, 5),
                          column(token), column(position)},
                         1));
}

void try_attend_decode(CheckSide& side, CheckShape s) {
  if (side.timed()) {
    s.rows = s.slots = 256;
    s.length = 2048;
  }
  gpu::AttendDecode a{.rows = s.rows, .H = s.H, .K = s.K, .d = s.d, .window = s.window, .most_blocks = s.blocks()};
  a.scale = 1 / std::sqrt(static_cast<float>(s.d));
  a.q_stride = s.N();
  a.q = side.narrow(s.rows * a.q_stride);
  std::vector<int32_t> position = positions_of(s), slot = slots_of(s);
  position.back() = static_cast<int32_t>(s.length - 1);
  int64_t keys = 0;
  for (int64_t r = 0; r < s.rows; ++r) {
    if (side.timed()) position[r] = static_cast<int32_t>(s.length - 1), slot[r] = static_cast<int32_t>(r);
    keys += s.window > 0 ? std::min<int64_t>(s.window, position[r] + 1) : position[r] + 1;
  }
  a.slot = side.ids(slot);
  a.position = side.ids(position);
  a.cache = cache_of(side, s, side.narrow(cache_numbers(s)));
  a.part = side.room(s.rows * a.most_blocks * s.H * s.d, at::kFloat).data_ptr<float>();
  a.part_norm = side.room(s.rows * a.most_blocks * s.H * 2, at::kFloat).data_ptr<float>();
  a.out = side.out_narrow(s.rows * s.H * s.d);
  side.call(keys * 2 * s.K * s.d * 2 + s.rows * s.H * s.d * 4,
            [&](const gpu::Table& t, gpu::Stream stream) { t.attend_decode(stream, a); });
}

void try_adamw(CheckSide& side, const CheckShape& s) {
  gpu::AdamW a{.n = side.timed() ? int64_t{1} << 26 : s.rows * s.D + 3};
  a.clip = 0.5f, a.keep = 0.999f, a.beta1 = 0.9f, a.beta2 = 0.99f;
  a.step_size = 1e-2f, a.root_correction = 0.3f, a.eps = 1e-8f;
  a.p = side.changed_floats(a.n);
  a.g = side.changed_floats(a.n, 0.1f);
  a.m = side.changed_floats(a.n, 0.01f);
  a.v = side.changed_floats(a.n, 1e-4f, 2e-4f);  // all above 0
  a.nonfinite = static_cast<int32_t*>(side.out(1, at::kInt, 0).zero_().mutable_data_ptr());
  side.call(a.n * 32, [&](const gpu::Table& t, gpu::Stream stream) { t.adamw(stream, a); });
}

void try_sum_of_squares(CheckSide& side, const CheckShape& s) {
  gpu::SumOfSquares a{.n = side.timed() ? int64_t{1} << 27 : s.rows * s.D * 5 + 1};
  a.x = side.floats(a.n);
  a.part = side.out((a.n + gpu::kSquaresChunk - 1) / gpu::kSquaresChunk, at::kDouble, kOfDouble).data_ptr<double>();
  side.call(a.n * 4, [&](const gpu::Table& t, gpu::Stream stream) { t.sum_of_squares(stream, a); });
}

struct KernelTrial {
  const char* kernel;
  void (*run)(CheckSide& side, const CheckShape& shape);
};
constexpr KernelTrial kTrials[] = {
    {"embed", try_embed},
    {"add_norm", try_add_norm},
    {"norm_backward", try_norm_backward},
    {"apply_rope_and_store_kv", try_apply_rope_and_store_kv},
    {"apply_rope_and_store_kv_backward", try_apply_rope_and_store_kv_backward},
    {"swiglu", try_swiglu},
    {"swiglu_backward", try_swiglu_backward},
    {"add_parts", try_add_parts},
    {"head_stats_of_tiles", try_head_stats_of_tiles},
    {"head_stats_of_rows", try_head_stats_of_rows},
    {"head_gradient", try_head_gradient},
    {"sample", try_sample_token},
    {"attend_decode", [](CheckSide& side, const CheckShape& shape) { try_attend_decode(side, shape); }},
    {"adamw", try_adamw},
    {"sum_of_squares", try_sum_of_squares},
};

static_assert(sizeof(gpu::Table) == (1 + std::size(kTrials)) * sizeof(void*), "a kernel without a trial");

void compare_at(const KernelTrial& trial, const CheckShape& shape, const Kernels& reference, const Kernels& tested,
                KernelFinding& worst) {
  CheckSide want(reference, false), got(tested, false);
  trial.run(want, shape);
  trial.run(got, shape);
  got.compare(want, worst);
}

}  // namespace

double difference_of(const at::Tensor& got, const at::Tensor& want) {
  if (want.numel() == 0) return 0;
  if (c10::isIntegralType(want.scalar_type(), true)) return got.ne(want).to(at::kDouble).mean().item<double>();
  const at::Tensor a = got.to(at::kDouble), b = want.to(at::kDouble);
  const double largest = b.abs().max().item<double>(), apart = (a - b).abs().max().item<double>();
  if (!std::isfinite(largest) || !std::isfinite(apart)) return kNoNumber;
  return apart == 0 ? 0 : apart / largest;
}

std::vector<KernelFinding> check_kernels(const Kernels& reference, const Kernels& tested, KernelShapes shapes,
                                         const ModelConfig* own) {
  const at::NoGradGuard no_grad;
  std::vector<KernelFinding> findings;
  for (const KernelTrial& trial : kTrials) {
    KernelFinding worst{.what = trial.kernel, .difference = -1};
    for (const CheckShape& shape : kFew) compare_at(trial, shape, reference, tested, worst);
    if (own != nullptr) compare_at(trial, heads_of(*own), reference, tested, worst);
    if (shapes == KernelShapes::all) {
      for (const CheckShape& shape : kMore) compare_at(trial, shape, reference, tested, worst);
    }
    findings.push_back(std::move(worst));
  }
  return findings;
}

void add_kernel_speed(at::Device device, const Limits& limits, std::vector<KernelFinding>& findings) {
  const at::NoGradGuard no_grad;
  const Kernels kernels = kernels_of(device);
  for (const KernelTrial& trial : kTrials) {
    CheckSide side(kernels, true);
    trial.run(side, kLarge);
    for (KernelFinding& f : findings) {
      if (f.what == trial.kernel) f.share = side.bandwidth() / limits.bandwidth;
    }
  }
}

}  // namespace ucas::testing

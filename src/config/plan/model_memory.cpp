#include "config/plan/model_memory.h"

#include <algorithm>

#include "base/str.h"
#include "hf/peft.h"
#include "kernels/dispatch.h"

namespace ucas {

namespace {

constexpr int64_t kF32 = 4;
constexpr int64_t kGemmRows = 16;  // row counts are multiples (model/backend/block.h)
// Of train/optimizer/dynamic_map.h: elements of one scale, and from how many on a moment is in codes.
constexpr int64_t kScaleBlock = 256, kCodedFrom = 4096;
constexpr int64_t kOffloadBuffers = 3;  // of train/optimizer/host_state.h

int64_t number(Dtype dtype) { return dtype == Dtype::bf16 ? 2 : kF32; }
int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
bool by_pairs(const PassShape& shape) { return shape.gpu || kernels::bf16_gemm().pairs; }  // bf16, not widened
int64_t padded(int64_t rows) { return rounded_up(rows, kGemmRows); }

// Widths of a row, in numbers.
struct Widths {
  explicit Widths(const ModelConfig& c)
      : D(c.hidden_size),
        F(c.intermediate_size),
        d(c.head_dim),
        H(c.num_attention_heads),
        K(c.num_key_value_heads),
        query(H * d),
        key(K * d),
        N(query + 2 * key),
        stride(rounded_up(d, 16)),
        unnormed(c.family->block.qk_norm ? query + key : 0),
        output(c.family->block.norms_after || c.residual_multiplier != 1 ? D : 0),
        kept_output(c.family->block.norms_after ? D : 0) {}
  int64_t D, F, d, H, K, query, key, N, stride, unnormed;
  int64_t output, kept_output;  // of attention and of the MLP, before norm or multiplier; of one more for backward
};

// Bytes of a row, of block.h's Activations without x.
struct RowBytes {
  RowBytes(const Widths& w, int64_t E)
      : attention((w.N + w.query) * E),
        for_backward(w.unnormed * E + 2 * w.H * kF32),
        mlp(w.D * kF32 + 2 * w.F * E + w.output * E),
        output_for_backward(w.kept_output * E),
        x(w.D * kF32),
        scratch((w.D + w.F) * E) {}
  int64_t attention, for_backward, mlp, output_for_backward, x, scratch;
};

// The tensors of a block whose rows take `row_bytes` each: how much of them is pooled.
int64_t pooled(int64_t P, std::initializer_list<int64_t> row_bytes) {
  int64_t sum = 0;
  for (int64_t bytes : row_bytes) sum += P * bytes < kPooledBelow ? P * bytes : 0;
  return sum;
}

// Keys and values of one layer, of sequences of whole tiles.
int64_t stage_bytes(const Widths& w, int64_t E, const PassShape& shape) {
  const int64_t sequences = (shape.rows + shape.length - 1) / std::max<int64_t>(shape.length, 1);
  return (shape.rows + 15 * sequences) * w.K * (w.d + w.stride) * E;
}

// Buffers of GEMMs, besides their rows (model/gemm/gemm.cpp). f32: a packed copy of 256 rows, or of all of them where
// that is less than the weights. bf16: a packed copy of the rows, or, where they are widened, the rows in f32 and as
// much again packed, and what each thread widens of the weights.
int64_t gemm_bytes(const Widths& w, Dtype dtype, const PassShape& shape) {
  const int64_t P = padded(shape.rows), widest = std::max({w.D, w.F, w.query});
  if (dtype == Dtype::f32) {
    int64_t most = std::min(P, kernels::kSumInner) * widest;
    for (const auto& [I, O] : {std::pair(w.D, w.N), {w.query, w.D}, {w.D, 2 * w.F}, {w.F, w.D}}) {
      if (kernels::packs_rows(P, I, O)) most = std::max(most, P * I);
    }
    return most * kF32;
  }
  if (by_pairs(shape)) return P * widest * 2;
  return 2 * P * std::max(widest, 2 * w.F) * kF32;
}

// A tile of logits with its rows; backward has it in the matrix's type, too, and maybe the logits of all rows.
int64_t tile_bytes(const ModelConfig& c, Dtype dtype, const PassShape& shape, bool backward) {
  const int64_t rows = padded(shape.rows), kept = kernels::rows_kept(c.vocab_size);
  const int64_t M = std::min(rows, kernels::kHeadRows), n = std::min(c.vocab_size, kernels::kTile);
  const int64_t E = number(dtype), D = c.hidden_size;
  int64_t bytes = M * n * kF32;
  if (backward) bytes += std::min(rows, kept) * c.vocab_size * kF32;
  if (dtype == Dtype::bf16) {
    bytes += M * D * 2 * E;  // the rows, and packed
    if (backward) bytes += M * n * E * 2 + M * D * kF32;
    if (!by_pairs(shape)) bytes += (M * D + M * n) * kF32;
  }
  return bytes;
}

// Backward of attention, one task for each thread (attend_head of model/backend/cpu/native_backward.cpp).
int64_t attend_bytes(const Widths& w, const PassShape& shape) {
  const int64_t length = std::min(shape.rows, shape.length), tiles = padded(length);
  const int64_t group = w.H / w.K;
  return shape.threads * kF32 *
         (2 * tiles * w.d + 3 * length * w.stride + 4 * 16 * group * w.stride +
          kernels::weights_together(group, length));
}

int64_t moment_bytes(MomentType type, int64_t elements) {
  if (type == MomentType::bf16) return 2 * elements;
  if (type == MomentType::f32 || elements < kCodedFrom) return kF32 * elements;
  return elements + (elements + kScaleBlock - 1) / kScaleBlock * kF32;
}

void count_trained(ModelMemory& m, const OptimizerConfig* optimizer, int64_t rows, int64_t columns, bool hidden,
                   int64_t layers, bool narrow) {
  const int64_t elements = std::max<int64_t>(rows, 1) * columns;
  m.trained += elements;
  m.gradients += kF32 * elements;
  m.passing += kF32 * elements / (hidden ? layers : 1);
  m.largest_trained = std::max(m.largest_trained, elements);
  if (optimizer == nullptr) return;
  const bool by_muon = optimizer->kind == OptimizerKind::muon && rows > 0 && hidden;
  m.moments += (by_muon ? 1 : 2) * moment_bytes(optimizer->moments, elements);
  const int64_t part = by_muon ? elements : std::min(elements, kOffloadedPart);
  const int64_t of_part = (narrow && rows > 0 ? kF32 * part : 0) +
                          (by_muon ? 1 : 2) * (elements < kCodedFrom ? moment_bytes(optimizer->moments, elements)
                                                                     : moment_bytes(optimizer->moments, part));
  m.offload = std::max(m.offload, kOffloadBuffers * of_part);
  if (!by_muon) return;
  const int64_t side = std::min(rows, columns), copies = optimizer->moments == MomentType::f32 ? 3 : 4;
  m.muon = std::max(m.muon, kF32 * (copies * elements + 3 * side * side));
}

}  // namespace

ModelMemory model_memory(const ModelConfig& config, const ModelOptions& options, const OptimizerConfig* optimizer,
                         bool head) {
  ModelMemory m;
  const int64_t E = number(options.dtype);
  const bool adapted = options.trained == Trained::adapter;
  const int64_t layers = config.num_hidden_layers;
  for (const ParameterShape& p : parameter_shapes(config)) {
    const int64_t elements = p.elements();
    const bool trains = adapted ? is_saved_whole(options.lora, p.module) : options.trained == Trained::all;
    const bool hidden = p.module.find(".layers.") != std::string::npos;
    m.largest = std::max(m.largest, elements);
    m.weights += elements * (p.rows > 0 ? E : kF32);
    if (trains && p.rows > 0 && E != kF32) m.masters += kF32 * elements;
    if (trains && (head || p.module != "lm_head"))
      count_trained(m, optimizer, p.rows, p.columns, hidden, layers, E != kF32);
    if (trains || !adapted) m.stored += elements;
    if (!p.linear || !is_adapted(options.lora, p.module)) continue;
    const int64_t rank = options.lora.rank, numbers = rank * (p.rows + p.columns);
    m.adapter += E * numbers;
    (adapted && E != kF32 ? m.masters : m.adapter) += kF32 * numbers;
    m.stored += numbers;
    if (!adapted) continue;
    count_trained(m, optimizer, rank, p.columns, true, layers, E != kF32);
    count_trained(m, optimizer, p.rows, rank, true, layers, E != kF32);
  }
  return m;
}

PassMemory forward_memory(const ModelConfig& config, const ModelOptions& options, const PassShape& shape) {
  const Widths w(config);
  const int64_t E = number(options.dtype), P = padded(shape.rows);
  const RowBytes row(w, E);
  const int64_t rows = shape.rows * w.D * kF32;  // of hidden states
  PassMemory blocks{.activations = P * (row.x + row.attention + row.mlp),
                    .scratch = P * row.scratch + stage_bytes(w, E, shape) + gemm_bytes(w, options.dtype, shape) + rows};
  blocks.note = str(grouped(shape.rows), " rows, one layer at a time");
  PassMemory head{.scratch = 2 * rows, .logits = tile_bytes(config, options.dtype, shape, false)};
  head.note = str(grouped(shape.rows), " rows");
  return blocks.total() >= head.total() || !shape.head ? blocks : head;
}

PassMemory backward_memory(const ModelConfig& config, const ModelOptions& options, const PassShape& shape) {
  const Widths w(config);
  const int64_t E = number(options.dtype), P = padded(shape.rows), layers = config.num_hidden_layers;
  const RowBytes row(w, E);
  const int64_t rows = shape.rows * w.D * kF32;
  const int64_t attention_pooled = pooled(P, {w.N * E, w.query * E, w.unnormed * E, 2 * w.H * kF32});
  const int64_t mlp_pooled = pooled(P, {row.x, 2 * w.F * E, w.output * E, w.output * E}), x_pooled = pooled(P, {row.x});
  const int64_t mlp = row.mlp + row.output_for_backward;
  int64_t layer = P * row.x, again = 0;
  if (options.recompute == Recompute::block) {
    again = P * (row.attention + row.for_backward + mlp) + stage_bytes(w, E, shape);
  } else if (options.recompute == Recompute::keep_attention) {
    layer += P * (row.attention + row.for_backward);
    again = P * mlp;
  } else {
    layer += P * (row.attention + row.for_backward + mlp);
  }
  PassMemory head{.activations = layers * layer + again + P * row.x};
  const bool whole = options.recompute == Recompute::none, attention = options.recompute != Recompute::block;
  head.pooled = (layers + 1) * x_pooled + (attention ? layers : 1) * attention_pooled +
                (whole ? layers : 1) * mlp_pooled +
                pooled(P, {w.D * E, w.F * E, w.D * E, w.F * E, w.N * E, w.query * E, 2 * w.F * E, row.x});
  head.note = str(layers, " layers of ", human_bytes(static_cast<double>(layer)),
                  again > 0 ? str(", one recomputed: ", human_bytes(static_cast<double>(again))) : "", "; ",
                  grouped(shape.rows), " rows");
  PassMemory blocks = head;
  // Hidden states and those that have a target, the gradient of these, and both again for the rows that count.
  head.scratch = 5 * rows;
  head.logits = tile_bytes(config, options.dtype, shape, true);
  // What BlockBackward has: both Scratch, gradients of qkv, attended and gate_up, and of the residual stream.
  const int64_t copy = E == kF32 && w.output == 0 ? 0 : w.D * E;
  blocks.scratch = P * (2 * row.scratch + (w.N + w.query + 2 * w.F) * E + row.x + copy) + rows +
                   attend_bytes(w, shape) + gemm_bytes(w, options.dtype, shape);
  return blocks.total() >= head.total() || !shape.head ? blocks : head;
}

int64_t cache_token_bytes(const ModelConfig& config, Dtype dtype) {
  const Widths w(config);
  return config.num_hidden_layers * w.K * (w.d + w.stride) * number(dtype);
}

int64_t cache_bytes(const ModelConfig& config, Dtype dtype, const KvBudget& room) {
  return room.held() * cache_token_bytes(config, dtype);
}

PassMemory generate_memory(const ModelConfig& config, const ModelOptions& options, const KvBudget& room,
                           const EngineConfig& engine, int64_t prompt, int64_t threads, bool cut, bool gpu) {
  const int64_t V = config.vocab_size;
  const int64_t prefill = std::min(std::max(engine.prefill_tokens, prompt), room.prompt_slots * prompt);
  const int64_t rows = std::max(prefill, room.slots);
  PassMemory m = forward_memory(config, options, {.rows = rows, .length = rows, .head = false, .gpu = gpu});
  const int64_t sampled_rows = std::min(logit_rows(V), padded(room.slots));
  m.logits = kF32 * V * (room.prompt_slots + std::max(sampled_rows, padded(room.prompt_slots)));
  m.logits += threads * V * (kF32 + (cut ? 16 : 0));  // probabilities of a row; candidates where they are cut
  return m;
}

}  // namespace ucas

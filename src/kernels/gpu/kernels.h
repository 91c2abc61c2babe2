// The table of GPU kernels (rows.h, lm_head.h, attention.h, update.h). `device` is compiled by nvcc and runs on a CUDA
// stream; tests have another that emulates the same thread blocks and lanes on the CPU (tests/support/gpu_emulation.h).
// Pointers are of the table's memory. Rows that are read or written by eights begin at multiples of 16 bytes: widths
// are multiples of 8 unless stated otherwise.
// Legend: R rows (tokens), D width, F MLP width, H query heads, K key/value heads, G = H / K, d head width, N = (H + 2
// K) d, V vocabulary. Tensors are bf16; all arithmetic is f32, sums of whole rows of logits are double. Results depend
// on the numbers alone: every sum has a fixed order, there are no atomics. Threads: any; calls are queued on the
// stream. Throws Error(ErrorKind::device) if a launch is refused.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/gpu/thread_block.h"

namespace ucas::gpu {

// --- rows of a block (rows.h) -------------------------------------------------------------------------------------

// x[r] = table[token[r]], widened.
struct Embed {
  int64_t rows, width;
  const int32_t* token;  // [R]
  const Bf16* table;     // [V, D]
  float* x;              // [R, D]
};

// sum = x + y; out = sum w / sqrt(mean sum^2 + eps).
struct AddNorm {
  int64_t rows, width;
  float eps;
  const float* x;    // [R, D]
  const Bf16* y;     // [R, D]; nullptr: 0, and `sum` is not written
  const float* w;    // [D]
  float* sum;        // [R, D]; may be x
  Bf16* out;         // [R, D]; nullptr: not written
  float* out_float;  // [R, D] the same unrounded; nullptr: not written
};

// Backward of the norm alone: dx += d loss / d x, from d_out = d loss / d out; and of its weight, in parts.
struct NormBackward {
  int64_t rows, width;
  float eps;
  const float* x;            // [R, D] what was normed
  const float* w;            // [D]
  const Bf16* d_out;         // [R, D]; nullptr: d_out_float is read
  const float* d_out_float;  // [R, D]
  float* dx;                 // [R, D]
  Bf16* dx_narrow;           // [R, D] the new dx, rounded; nullptr: not written
  float* dw;                 // [norm_parts(R), D] whose sum over parts is d loss / d w; nullptr: not written
};
constexpr int64_t kRowsOfPart = 16;
inline int64_t norm_parts(int64_t rows) { return (rows + kRowsOfPart - 1) / kRowsOfPart; }

// A sequence's keys and values of a layer. A block holds kBlockTokens tokens of one slot, for each head [d /
// 8][kBlockTokens][8] of keys, then for each head [kBlockTokens][d] of values: threads of consecutive keys read
// consecutive addresses.
constexpr int64_t kBlockTokens = 256;
struct Cache {
  Bf16* layer;           // where the layer's blocks begin
  int64_t block_stride;  // numbers from one block of the layer to the next
  const int32_t* table;  // [slots, blocks_of_slot] the block of each kBlockTokens tokens
  int64_t blocks_of_slot;
};
// Numbers of one block of one layer.
inline int64_t block_numbers(int64_t K, int64_t d) { return 2 * K * kBlockTokens * d; }

// The heads of a row of q, k and v after its GEMM, in place: + bias; q and k normed per head, where the family does;
// q and k rotated by the row's position. With a cache, k and v are put there, too.
struct RopeAndStoreKv {
  int64_t rows, H, K, d;
  float eps;
  Bf16* qkv;                     // [R, N]
  const float* bias;             // [N]; nullptr: none
  const float *q_norm, *k_norm;  // [d]; nullptr: none
  const float *cosines, *sines;  // [positions, d / 2]
  const int32_t* position;       // [R]
  Bf16* unnormed;                // [R, (H + K) d] q and k before their norm, with bias; nullptr: not wanted
  const int32_t* slot;           // [R]; nullptr: no cache
  Cache cache;
};
// Its backward: d_qkv [R, N] from the gradients of the placed heads.
struct RopeAndStoreKvBackward {
  int64_t rows, H, K, d;
  float eps;
  const Bf16 *d_q, *d_k, *d_v;   // [R, H, d], [R, K, d], [R, K, d]
  const float *q_norm, *k_norm;  // [d]; nullptr: none
  const Bf16* unnormed;          // [R, (H + K) d]; where there is a norm
  const float *cosines, *sines;
  const int32_t* position;
  Bf16* d_qkv;  // [R, N]
  float* dw;    // [R, 2, d] of q_norm and of k_norm, to be summed over rows; nullptr where there is none
};

// out = silu(gate) up, from rows [gate | up].
struct Swiglu {
  int64_t rows, width;  // F
  const Bf16* gate_up;  // [R, 2 F]
  Bf16* out;            // [R, F]
};
struct SwigluBackward {
  int64_t rows, width;
  const Bf16* gate_up;  // [R, 2 F]
  const Bf16* d_out;    // [R, F]
  Bf16* d_gate_up;      // [R, 2 F]; may be gate_up
  Bf16* act;            // [R, F] silu(gate) up, as Swiglu gives it; nullptr: not wanted
};

// sum = before + the parts one after another, in an order that their number alone decides.
struct AddParts {
  int64_t parts, width, stride;  // stride: from part to part, a multiple of 8
  const float* part;             // [parts, D]; nullptr: part_narrow is read
  const Bf16* part_narrow;       // [parts, D]
  const float* before;           // [D]; nullptr: 0
  float* sum;                    // [D]; may be `before`
};

// --- LM head and sampling (lm_head.h) -------------------------------------------------------------------------------

constexpr int64_t kHeadTile = 2048;  // columns of a tile of logits
inline int64_t head_tiles(int64_t vocab) { return (vocab + kHeadTile - 1) / kHeadTile; }

// Of one tile of a row: kernels::RowStats with its own largest z; z = logit / temperature.
struct TileStats {
  float max;
  float unused = 0;
  double sum, weighted, total;
};

// The statistics of some neighbouring tiles of logits.
struct HeadStatsOfTiles {
  int64_t rows, columns;      // columns of this tile; any number
  int64_t stride;             // from row to row
  int64_t first_tile, tiles;  // of the first column here; of a whole row
  float inverse_temperature;
  const float* logits;    // [R, columns]
  const int32_t* target;  // [R]; nullptr: none
  TileStats* of_tile;     // [R, tiles]
  float* chosen;          // [R] the target's logit, written where its tile is among these
};
// What the tiles of whole rows say: kernels::token_stats, merged tile after tile.
struct HeadStatsOfRows {
  int64_t rows, tiles, vocab;
  float inverse_temperature;
  const TileStats* of_tile;                              // [R, tiles]
  const float* chosen;                                   // [R]
  float *logprob, *entropy, *confidence, *margin, *lse;  // [R]
};
// d loss / d logits of some columns, as kernels::row_gradient, in bf16 over the logits themselves: row r of the result
// begins where row r of the logits does, so its stride is 2 `stride`.
struct HeadGradient {
  int64_t rows, columns, stride;
  int64_t first_column;
  float inverse_temperature, inverse_vocab;
  const int32_t* target;       // [R]
  const float *lse, *entropy;  // [R]
  const float *g, *e, *u;      // [R] d loss / d logprob, entropy, confidence
  float* logits;               // [R, columns], in and out
};

// What sampling needs of a row; key as base/rng.h's SampleKey.
struct SamplerState {
  uint32_t problem, response, sample;  // index of the token in the response; counted on where the token is fed
  uint32_t greedy;
};
struct SamplerRun {  // of all rows; where the device reads it, so that a recorded step serves every seed and step
  uint64_t seed;
  uint32_t step, unused = 0;
};
struct DeviceSampledToken {  // rollout/sampling/sampler.h's SampledToken
  int32_t token;
  float logprob, whole_logprob, entropy, confidence, logit;
};
// One token a row by the inverse of the cumulative distribution over columns in their order, or the first of the
// largest; rows that are not finite give token -1. With `token`, it is also fed there, and position and counter
// advance. What top_k, top_p and min_p leave, and in which order it is sampled, is rollout/sampling/sampler.h's.
struct SampleToken {
  int64_t rows, vocab, stride, tiles;
  float inverse_temperature;        // 1 for greedy rows
  const SamplerRun* run;            // [1]
  const float* logits;              // [R, V]
  const TileStats* of_tile;         // [R, tiles] at this temperature
  const TileStats* of_tile_greedy;  // [R, tiles] at temperature 1; nullptr: no row is greedy
  SamplerState* state;              // [R]
  DeviceSampledToken* sampled;      // [R]
  int32_t* token;                   // [R]; nullptr: not fed
  int32_t* position;                // [R]
  int64_t top_k = 0;                // 0: off; as rollout/sampling/config.h has them
  double top_p = 1, min_p = 0;
  bool truncates() const { return (top_k > 0 && top_k < vocab) || top_p < 1 || min_p > 0; }
};

// --- decoding attention (attention.h) -------------------------------------------------------------------------------

// out = softmax(q k / sqrt d) v of one query token a row over its slot's keys up to its position, its own included; of
// a window the last so many. Split: every block of kBlockTokens keys makes its part, and the parts are merged in
// order: the rule knows nothing of the batch.
struct AttendDecode {
  int64_t rows, H, K, d;  // d: a multiple of 8, at most 256; G at most 16
  int64_t window;         // 0: none
  int64_t most_blocks;    // of any row here: rows have ceil((position + 1) / kBlockTokens)
  float scale;
  const Bf16* q;  // row r at q + r q_stride: [H, d]
  int64_t q_stride;
  const int32_t *slot, *position;  // [R]
  Cache cache;
  float* part;       // scratch [R, most_blocks, H, d]
  float* part_norm;  // scratch [R, most_blocks, H, 2] largest score, sum
  Bf16* out;         // [R, H, d]
};

// --- update (update.h) ----------------------------------------------------------------------------------------------

// AdamW, element by element as train/optimizer/adamw.cpp has it; zeroes the gradient. n is any number.
struct AdamW {
  int64_t n;
  float clip, keep, beta1, beta2, step_size, root_correction, eps;
  float *p, *g, *m, *v;
  int32_t* nonfinite;  // [1] set to 1 where a result is not finite, else left
};
// part[b] = the sum of squares of kSquaresChunk elements, in double.
constexpr int64_t kSquaresChunk = 65536;
struct SumOfSquares {
  int64_t n;
  const float* x;
  double* part;  // [ceil(n / kSquaresChunk)]
};

struct Table {
  const char* name;
  void (*embed)(Stream, const Embed&);
  void (*add_norm)(Stream, const AddNorm&);
  void (*norm_backward)(Stream, const NormBackward&);
  void (*apply_rope_and_store_kv)(Stream, const RopeAndStoreKv&);
  void (*apply_rope_and_store_kv_backward)(Stream, const RopeAndStoreKvBackward&);
  void (*swiglu)(Stream, const Swiglu&);
  void (*swiglu_backward)(Stream, const SwigluBackward&);
  void (*add_parts)(Stream, const AddParts&);
  void (*head_stats_of_tiles)(Stream, const HeadStatsOfTiles&);
  void (*head_stats_of_rows)(Stream, const HeadStatsOfRows&);
  void (*head_gradient)(Stream, const HeadGradient&);
  void (*sample)(Stream, const SampleToken&);
  void (*attend_decode)(Stream, const AttendDecode&);
  void (*adamw)(Stream, const AdamW&);
  void (*sum_of_squares)(Stream, const SumOfSquares&);
};

// Of libucas_cuda.so (model/tensor/cuda_library.h).
const Table& device();
// Why the current device cannot run that table, in the runtime's words: no image for its architecture, a driver too old
// for the embedded PTX. Empty: it can.
std::string refusal();
// Whether kernels are put on the device while the one before them still runs, where it can (thread_block.h); on.
void launch_early(bool wanted);

}  // namespace ucas::gpu

// The table of CPU kernels: one implementation (kernels_body.inc), compiled once per instruction set. The fastest that
// this CPU supports is chosen when first asked for; UCAS_ISA=scalar|avx2|avx512 forces one (Error(ErrorKind::config) if
// it cannot run). "scalar" is the specification and uses the compiler's baseline instructions. Pointers only, no
// allocation, no exceptions.
#pragma once

#include <cstdint>

#include "kernels/lm_head.h"

namespace ucas::kernels {

// A number kept in bf16, the upper half of its f32. Only what is kept is bf16: all arithmetic is f32.
struct Bf16 {
  uint16_t bits;
};

// Attention of tokens that follow each other in a sequence, over their own key/value head: `group` query heads share
// it. The first one sees `keys` keys, itself the last of them, and each next one sees one more; all of these counts end
// in the same tile of 16. Where there is a window, a token sees its last `window` keys only, and no work is done for
// the whole tiles before them. Keys come in tiles of 16 tokens, [tile][d][16], so that scores need no horizontal sums;
// values in rows of `stride` numbers, a multiple of 16, zero beyond d. Keys after the last one may hold anything. E:
// how keys and values are kept, float or Bf16. The first `shared` keys, whole tiles before the first token, may be
// elsewhere. A token's numbers depend neither on that nor on how many others come with it.
template <class E>
struct Attend {
  int64_t queries, group, keys, window, d, stride;
  float scale;
  const float* q;  // [queries, group, d]
  const E* key;    // [tiles, d, 16], of those that are not shared
  const E* value;  // [keys, stride]
  float* weight;   // scratch [queries, group, 16 tiles]
  float* out;      // [queries, group, stride]
  float* norm;     // [queries, group, 2] largest score and 1 / sum e^(score - largest), for the backward
  int64_t shared = 0;
  const E* shared_key = nullptr;
  const E* shared_value = nullptr;
};

// Its backward: writes d_q, adds to d_key and d_value.
struct AttendBackward {
  int64_t queries, group, keys, window, d, stride;
  float scale;
  const float *q, *out, *d_out;  // [queries, group, stride], zero beyond d
  const float* norm;             // as above
  const float *key, *value;      // both in tiles
  const float* key_rows;         // [keys, stride]
  float* scratch;                // 2 of the forward's
  float* d_q;                    // [queries, group, stride]
  float *d_key, *d_value;        // [keys, stride]
};
// static: an inline function shared by the files would be linked once, maybe with instructions this CPU lacks.
static inline int64_t tiles_of(int64_t tokens) { return (tokens + 15) / 16; }
// The first key in sight of a token that is the last of so many keys.
static constexpr int64_t first_in_sight(int64_t keys, int64_t window) {
  return window == 0 || keys < window ? 0 : keys - window;
}

constexpr int64_t kAttentionWeights = 65536;
// How many tokens from `position` on attention takes at most together: they must end in one tile of keys, and their
// weights should stay in the second-level cache.
static inline int64_t queries_together(int64_t group, int64_t position) {
  const int64_t room = kAttentionWeights / (group * 16 * tiles_of(position + 1)), left = 16 - position % 16;
  return room < 1 ? 1 : room < left ? room : left;
}
// The backward's two sets of weights of a sequence of `length` at most: floats.
static inline int64_t weights_together(int64_t group, int64_t length) {
  const int64_t row = group * 16 * tiles_of(length), most = row < kAttentionWeights ? kAttentionWeights : row;
  return 2 * (16 * row < most ? 16 * row : most);
}

// Memory that will be read soon: `count` rows of so many lines of 64 bytes, `stride` bytes apart.
struct Prefetch {
  const void* rows = nullptr;
  int64_t stride = 0, lines = 0, count = 0;
};

// c[r][n] = (add ? c[r][n] : 0) + sum over k of a[r a_row + k a_inner] b[k b_stride + n]. Every number is one chain of
// multiply-adds in the order of k, so its bits depend on that chain alone: not on the other rows and columns, nor on
// how k is cut into calls.
struct Gemm {
  int64_t rows, columns, inner;  // columns: a multiple of 16
  const float* a;
  int64_t a_row, a_inner;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
  bool add;
  Prefetch prefetch = {};  // fetched meanwhile, as far as there is time
};

// The same for a few rows x of numbers and `outputs` rows w of a parameter, c[r][o] = sum over k of x[r][k] w[o][k]: w
// is read once, at the speed of memory, and nothing is packed. A unit is an f32, or a pair of bf16; w's pairs may also
// meet two numbers of f32, one after the other.
struct SmallGemm {
  int64_t rows, outputs, inner;  // rows <= kSmallM; inner: units of w
  const uint32_t* x;
  int64_t x_stride;
  const uint32_t* w;
  int64_t w_stride;
  float* c;
  int64_t c_stride;
};
constexpr int64_t kSmallM = 16;

constexpr int64_t kSumInner = 256;  // of each chain at a time: 64 such chains stay in the cache
// Of P rows of I numbers by O rows of weights: whether it costs less to pack the rows than the weights.
static inline bool packs_rows(int64_t P, int64_t I, int64_t O) { return O * I >= P * (I + O); }

struct Table {
  const char* name;
  // out = x w / sqrt(mean x^2 + eps); out may be x
  void (*rms_norm)(const float* x, const float* w, int64_t n, float eps, float* out);
  // dx += d loss / d x, dw += d loss / d w
  void (*rms_norm_backward)(const float* x, const float* w, const float* d_out, int64_t n, float eps, float* dx,
                            float* dw);
  // Rotates the first `rotated` heads of width d of a row.
  void (*rope)(float* row, const float* cos, const float* sin, int64_t rotated, int64_t d);
  void (*rope_backward)(float* row, const float* cos, const float* sin, int64_t rotated, int64_t d);
  // out = silu(gate) up, from a row [gate | up] of 2 n
  void (*swiglu)(const float* gate_up, int64_t n, float* out);
  void (*swiglu_backward)(const float* gate_up, const float* d_out, int64_t n, float* d_gate_up);
  // The same with GELU's tanh approximation for silu.
  void (*geglu)(const float* gate_up, int64_t n, float* out);
  void (*geglu_backward)(const float* gate_up, const float* d_out, int64_t n, float* d_gate_up);
  void (*add)(const float* x, int64_t n, float* sum);  // sum += x
  void (*attend)(const Attend<float>& a);
  void (*attend_bf16)(const Attend<Bf16>& a);
  void (*attend_backward)(const AttendBackward& a);
  void (*row_stats)(const float* logits, int64_t n, float inverse_temperature, RowStats& stats);
  void (*row_gradient)(const float* logits, int64_t n, int64_t target, const RowGradient& row, float* out);
  void (*gemm)(const Gemm& p);
  void (*gemm_small_m)(const SmallGemm& p);
  void (*gemm_small_m_bf16)(const SmallGemm& p);     // pairs by pairs; needs AVX512-bf16; null in the other tables
  void (*gemm_small_m_widened)(const SmallGemm& p);  // pairs of w, x of f32
  void (*widen)(const Bf16* from, int64_t n, float* to);
  void (*narrow)(const float* from, int64_t n, Bf16* to);  // to nearest, ties to even
  // to[i] = the bits of a[i], above them those of b[i]
  void (*pair)(const uint16_t* a, const uint16_t* b, int64_t n, uint32_t* to);
  // to[c][r] = from[r][c] of 16 bits or of 32; rows and columns are multiples of 16. Strides count elements.
  void (*transpose_16)(const uint16_t* from, int64_t from_stride, int64_t rows, int64_t columns, uint16_t* to,
                       int64_t to_stride);
  void (*transpose_32)(const uint32_t* from, int64_t from_stride, int64_t rows, int64_t columns, uint32_t* to,
                       int64_t to_stride);
};

const Table& table();
// nullptr if this CPU cannot run it.
const Table* table_of(const char* name);

namespace scalar {
extern const Table kTable;
}
namespace avx2 {
extern const Table kTable;
}
namespace avx512 {
extern const Table kTable;
}

}  // namespace ucas::kernels

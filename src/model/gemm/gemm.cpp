// Tiles of f32 by kernels::Table::GEMM. Those of bf16 by the same, their numbers widened as they are packed, or,
// where the CPU is faster with pairs of them, by oneDNN's micro-kernel inside LibTorch (cpublas::brgemm), which sums in
// f32. Both multiply plain rows with a packed matrix, and in both a number is one lane's sum in a fixed order: nothing
// depends on the other rows, the tiles or the threads. In the first GEMM parameters take the part of the rows,
//   (x W^T)^T = W x^T
// so they need no second, packed form, and a few rows of x cost no more than reading W; what is packed is the smaller
// x.
#include "model/gemm/gemm.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/dispatch.h"
#include "model/backend/block.h"
#include "model/gemm/gemm_panels.h"

namespace ucas {

namespace {

using at::native::cpublas::brgemm;
using kernels::kSumInner;
using kernels::Prefetch;

constexpr int64_t kTileOut = 64;   // outputs of a tile
constexpr int64_t kTileRows = 64;  // rows of a tile
// What stays in the second cache: inputs whose gradients are summed together, from so many rows at a time; inputs and
// rows of x that gradients of parameters are summed from; in bf16, rows and outputs of sums that wait there.
constexpr int64_t kInputs = 448, kInputRows = 64, kSumInputs = 1024, kSumRows16 = 1024, kSumOutputs16 = 2048;

bool is_bf16(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16; }
// Rows by strides: the last dimension is dense.
int64_t stride_of(const at::Tensor& x) { return x.stride(0); }
const at::BFloat16* numbers(const at::Tensor& x) { return x.const_data_ptr<at::BFloat16>(); }
uint16_t* bits16(at::BFloat16* x) { return reinterpret_cast<uint16_t*>(x); }
const uint16_t* bits16(const at::BFloat16* x) { return reinterpret_cast<const uint16_t*>(x); }

// Before a thread leaves its tiles.
template <class T>
void release() {
  if constexpr (!std::is_same_v<T, float>) at::native::cpublas::brgemm_release();
}

// The micro-kernel takes inputs in pairs.
bool by_pairs(int64_t inputs) { return inputs % 2 == 0 && kernels::bf16_gemm().pairs; }

at::Tensor widened(const at::Tensor& x) { return is_bf16(x) ? x.to(at::kFloat) : x; }

// Some rows of a parameter in the type in which they are multiplied: in place, or widened into `room`.
template <class T>
struct Part {
  const T* at;
  int64_t stride;
};
template <class T>
Part<T> part_of(const at::Tensor& w, int64_t first, int64_t count, std::vector<T>& room) {
  const int64_t stride = stride_of(w), columns = w.size(1);
  if constexpr (std::is_same_v<T, float>) {
    if (is_bf16(w)) {
      room.resize(count * columns);
      const Bf16* from = data<Bf16>(w) + first * stride;
      for (int64_t r = 0; r < count; ++r) kernels::table().widen(from + r * stride, columns, &room[r * columns]);
      return {room.data(), columns};
    }
  }
  return {w.const_data_ptr<T>() + first * stride, stride};
}

// to[c][r] = from[r][c]
void transpose(const uint32_t* from, int64_t from_stride, int64_t rows, int64_t columns, uint32_t* to,
               int64_t to_stride) {
  const int64_t whole_rows = rows / 16 * 16, whole = columns / 16 * 16;
  kernels::table().transpose_32(from, from_stride, whole_rows, whole, to, to_stride);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < whole_rows ? whole : 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
}
void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to, int64_t to_stride) {
  transpose(reinterpret_cast<const uint32_t*>(from), from_stride, rows, columns, reinterpret_cast<uint32_t*>(to),
            to_stride);
}

// x [P, I] as [P / tile][I / unit][tile][unit], the tiles as wide as a panel, of pairs kTileRows, but for the last; a
// unit is an f32 or a pair.
at::Tensor packed_rows(const at::Tensor& x) {
  const int64_t P = x.size(0), unit = is_bf16(x) ? 2 : 1, I = x.size(1) / unit, stride = stride_of(x) / unit;
  const int64_t tile_rows = is_bf16(x) ? kTileRows : kPanel;
  at::Tensor packed = at::empty({P, x.size(1)}, x.options());
  const auto* from = static_cast<const uint32_t*>(x.const_data_ptr());
  auto* to = static_cast<uint32_t*>(packed.mutable_data_ptr());
  UCAS_CHECK(stride_of(x) % unit == 0 && reinterpret_cast<uintptr_t>(from) % 4 == 0,
             "GEMM rows must begin at a multiple of the unit");
  parallel_for((P + tile_rows - 1) / tile_rows, grain_of(tile_rows * I), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * tile_rows, rows = std::min(tile_rows, P - first);
      transpose(from + first * stride, stride, rows, I, to + first * I, rows);
    }
  });
  return packed;
}

// Tiles of so many rows by kTileOut that are worth a thread: a dozen multiply-adds take the time of a simple operation,
// and so many rows at least pass while a number of W comes from memory.
int64_t grain_of_tiles(int64_t rows, int64_t inner) {
  return grain_of(std::max<int64_t>(rows, 16) * inner * (kTileOut / 16));
}

// Where a tile of x W^T goes.
class TileStore {
 public:
  TileStore(at::Tensor out, at::Tensor onto) : out_(std::move(out)), onto_(std::move(onto)) {}

  // Where that tile will be put.
  Prefetch prefetch(int64_t first_out, int64_t outputs, int64_t first_row, int64_t rows) const {
    const int64_t bytes = static_cast<int64_t>(out_.element_size());
    const char* at =
        static_cast<const char*>(out_.const_data_ptr()) + (first_row * stride_of(out_) + first_out) * bytes;
    return {at, stride_of(out_) * bytes, lines_of(outputs * bytes), rows};
  }

  // tile [outputs][rows]; `scratch` holds as many floats.
  void store_transposed(const float* tile, int64_t first_out, int64_t outputs, int64_t first_row, int64_t rows,
                        float* scratch) const {
    if (!is_bf16(out_) && !onto_.defined())
      return transpose(tile, rows, outputs, rows, data(out_) + first_row * stride_of(out_) + first_out,
                       stride_of(out_));
    transpose(tile, rows, outputs, rows, scratch, kTileOut);
    store_rows(scratch, first_out, outputs, first_row, rows);
  }

  // tile [rows][stride], which it may use, of at most kTileOut outputs
  void store_rows(float* tile, int64_t first_out, int64_t outputs, int64_t first_row, int64_t rows,
                  int64_t stride = kTileOut) const {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = tile + r * stride;
      if (is_bf16(out_)) {
        store_row<Bf16>(row, first_row + r, first_out, outputs);
      } else {
        store_row<float>(row, first_row + r, first_out, outputs);
      }
    }
  }

 private:
  template <class E>
  void store_row(float* row, int64_t at_row, int64_t at_out, int64_t outputs) const {
    if (onto_.defined()) {
      float before[kTileOut];
      const E* from = data<E>(onto_) + at_row * stride_of(onto_) + at_out;
      kernels::table().add(open_row(from, outputs, before), outputs, row);
    }
    E* to = data<E>(out_) + at_row * stride_of(out_) + at_out;
    if constexpr (std::is_same_v<E, float>) {
      std::copy_n(row, outputs, to);
    } else {
      kernels::table().narrow(row, outputs, to);
    }
  }
  const at::Tensor out_, onto_;
};

// A tile [outputs][rows] of W x^T: w from its first row on, x packed from its first row on.
void multiply(int64_t outputs, int64_t rows, int64_t I, const Part<at::BFloat16>& w, const at::BFloat16* x, float* tile,
              const at::Tensor& /*of*/, int64_t /*first*/, const Prefetch& /*where*/) {
  brgemm(outputs, rows, I, w.stride, rows, rows, false, w.at, x, tile);
}
// `of` from its row `first` on is read for the first time, or has been (-1). Meanwhile come what follows in memory: of
// plain weights the next part of these rows, of those that were widened the same part of the rows below; and of x.
void multiply(int64_t outputs, int64_t rows, int64_t I, const Part<float>& w, const float* x, float* tile,
              const at::Tensor& of, int64_t first, const Prefetch& where) {
  const auto next = [&](int64_t k, int64_t step) -> PrefetchPair {
    const Prefetch more = prefetch_panels(x, rows, I, k + step, step);
    if (first < 0) return {more, k + step >= I ? where : Prefetch()};
    if (is_bf16(of))
      return {prefetch_part(data<Bf16>(of) + (first + outputs) * stride_of(of), stride_of(of), outputs, k, step), more};
    const bool below = k + step >= I;
    return {prefetch_part(w.at + (below ? outputs * w.stride : 0), w.stride, outputs, below ? 0 : k + step, step),
            more};
  };
  gemm_panels(outputs, rows, I, {w.at, w.stride, 1}, x, tile, rows, false, next);
}

template <class T>
void gemm_tiled(const at::Tensor& x, const at::Tensor& w, const at::Tensor& out, const at::Tensor& onto) {
  const int64_t P = x.size(0), I = x.size(1), O = w.size(0);
  const at::Tensor packed = packed_rows(x);
  const T* rows_of_x = packed.const_data_ptr<T>();
  const TileStore store(out, onto);
  parallel_for((O + kTileOut - 1) / kTileOut, grain_of_tiles(P, I), [&](int64_t begin, int64_t end) {
    float tile[kTileOut * kTileRows], scratch[kTileOut * kTileRows];
    std::vector<T> room;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * kTileOut, outputs = std::min(kTileOut, O - first);
      const Part<T> weight = part_of(w, first, outputs, room);
      for (int64_t row = 0; row < P; row += kTileRows) {
        const int64_t rows = std::min(kTileRows, P - row);
        multiply(outputs, rows, I, weight, rows_of_x + row * I, tile, w, row == 0 ? first : -1,
                 store.prefetch(first, outputs, row, rows));
        store.store_transposed(tile, first, outputs, row, rows, scratch);
      }
    }
    release<T>();
  });
}

// Of at most so many rows W is read once, by a kernel that packs nothing; from there on the tiles are faster.
int64_t largest_small_m(at::ScalarType type) {
  return type == at::kFloat ? kernels::kSmallM / 2 : kernels::bf16_gemm().small_m;
}

bool is_small_m(int64_t rows, at::ScalarType type) { return rows <= largest_small_m(type) || rows % kRowAlign != 0; }

// x: of w's type, or f32 with pairs of w.
void gemm_small_m(const at::Tensor& x, const at::Tensor& w, const at::Tensor& out, const at::Tensor& onto) {
  const kernels::Table& table = kernels::table();
  const int64_t unit = is_bf16(w) ? 2 : 1, unit_of_x = is_bf16(x) ? 2 : 1;
  const int64_t P = x.size(0), I = w.size(1) / unit, O = w.size(0);
  const auto *rows = static_cast<const uint32_t*>(x.const_data_ptr()),
             *weight = static_cast<const uint32_t*>(w.const_data_ptr());
  const int64_t x_stride = stride_of(x) / unit_of_x, w_stride = stride_of(w) / unit;
  const auto kernel = is_bf16(x)   ? table.gemm_small_m_bf16
                      : is_bf16(w) ? table.gemm_small_m_widened
                                   : table.gemm_small_m;
  const TileStore store(out, onto);
  // Shared out by what the kernel takes at a time, or of nine tiles one of two threads would take five.
  constexpr int64_t kUnit = 16;
  const int64_t grain = grain_of_tiles(P, I) * kTileOut / kUnit;
  parallel_for((O + kUnit - 1) / kUnit, grain, [&](int64_t begin, int64_t end) {
    float tile[kernels::kSmallM * kTileOut];
    for (int64_t first = begin * kUnit; first < std::min(O, end * kUnit); first += kTileOut) {
      const int64_t outputs = std::min({kTileOut, O - first, end * kUnit - first});
      for (int64_t row = 0; row < P; row += kernels::kSmallM) {
        const int64_t count = std::min(kernels::kSmallM, P - row);
        kernel(
            {count, outputs, I, rows + row * x_stride, x_stride, weight + first * w_stride, w_stride, tile, kTileOut});
        store.store_rows(tile, first, outputs, row, count);
      }
    }
  });
}

// Bit-identical for many rows: W is packed, and nothing is transposed.
void gemm_by_rows(const at::Tensor& x, const at::Tensor& w, const at::Tensor& out, const at::Tensor& onto) {
  const int64_t P = x.size(0), I = x.size(1), O = w.size(0);
  const TileStore store(out, onto);
  parallel_for((O + kTileOut - 1) / kTileOut, grain_of_tiles(P, I), [&](int64_t begin, int64_t end) {
    float tile[kTileOut * kTileRows];
    std::vector<float> packed(I * kTileOut), room;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * kTileOut, count = std::min(kTileOut, O - first);
      const Part<float> weight = part_of(w, first, count, room);
      for (int64_t p = 0; p < count; p += kPanel) {
        const int64_t panel = std::min(kPanel, count - p);
        transpose(weight.at + p * weight.stride, weight.stride, panel, I, packed.data() + p * I, aligned(panel));
      }
      for (int64_t row = 0; row < P; row += kTileRows) {
        const int64_t rows = std::min(kTileRows, P - row);
        const float* from = x.const_data_ptr<float>() + row * stride_of(x);
        const auto next = [&](int64_t k, int64_t step) -> PrefetchPair {
          const bool below = k + step >= I;
          const float* at = from + (below ? rows * stride_of(x) : 0);
          return {prefetch_part(at, stride_of(x), rows, below ? 0 : k + step, step), {}};
        };
        gemm_panels(rows, aligned(count), I, {from, stride_of(x), 1}, packed.data(), tile, kTileOut, false, next);
        store.store_rows(tile, first, count, row, rows);
      }
    }
  });
}

// Columns [first, first + count) of rows of x as [rows][count] in f32, count rounded up to 16 with zeros.
template <class E>
void pack_inner(const E* from, int64_t stride, int64_t rows, int64_t count, float* to) {
  const int64_t width = aligned(count);
  for (int64_t r = 0; r < rows; ++r) {
    if constexpr (std::is_same_v<E, float>) {
      std::copy_n(from + r * stride, count, to + r * width);
    } else {
      kernels::table().widen(from + r * stride, count, to + r * width);
    }
    std::fill(to + r * width + count, to + (r + 1) * width, 0.0f);
  }
}
// The same in panels.
template <class E>
void pack_panels(const E* from, int64_t stride, int64_t rows, int64_t count, float* to) {
  for (int64_t p = 0; p < count; p += kPanel)
    pack_inner(from + p, stride, rows, std::min(kPanel, count - p), to + p * rows);
}
// As [rows / 2][count][2].
void pack_panels(const at::BFloat16* from, int64_t stride, int64_t rows, int64_t count, at::BFloat16* to) {
  for (int64_t r = 0; r < rows; r += 2) {
    const uint16_t* row = bits16(from) + r * stride;
    kernels::table().pair(row, row + stride, count, reinterpret_cast<uint32_t*>(to + r * count));
  }
}

// d_x (+)= d_out W: the weights are packed, some inputs and some outputs at a time. d_out in f32; d_x of W's type E,
// where that is bf16 rounded once.
template <class E>
void gemm_input_gradient_by_panels(const at::Tensor& d_out, const at::Tensor& w, const at::Tensor& d_x, Into into) {
  constexpr bool there = std::is_same_v<E, float>;  // whether sums are made where they go
  const int64_t P = d_out.size(0), I = w.size(1), O = w.size(0), stride = stride_of(d_out);
  const float* rows = d_out.const_data_ptr<float>();
  const E* weight = data<E>(w);
  const TileStore store(d_x, into == Into::sum ? d_x : at::Tensor());
  // As many inputs as there are threads for, up to kInputs: d_out is read again for the next ones.
  const int64_t shares = std::max<int64_t>(at::get_num_threads(), (I + kInputs - 1) / kInputs);
  const int64_t width = (I + shares * kPanel - 1) / (shares * kPanel) * kPanel;
  parallel_for((I + width - 1) / width, grain_of(P * O), [&](int64_t begin, int64_t end) {
    std::vector<float> packed(std::min(O, kSumInner) * width), sums(there ? 0 : P * width);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * width, count = std::min(width, I - first);
      float* to = sums.data();
      if constexpr (there) to = data(d_x) + first;
      const int64_t to_stride = there ? stride_of(d_x) : width;
      for (int64_t o = 0; o < O; o += kSumInner) {
        const int64_t inner = std::min(kSumInner, O - o);
        pack_panels(weight + o * stride_of(w) + first, stride_of(w), inner, count, packed.data());
        const int64_t after = o + inner < O ? o + inner : 0;
        for (int64_t row = 0; row < P; row += kInputRows) {
          const int64_t some = std::min(kInputRows, P - row);
          const auto next = [&](int64_t, int64_t) -> PrefetchPair {
            return {prefetch_part(rows + row * stride, stride, some, after, inner), {}};
          };
          gemm_panels(some, count, inner, {rows + row * stride + o, stride, 1}, packed.data(), to + row * to_stride,
                      to_stride, (there && into == Into::sum) || o > 0, next);
        }
      }
      if constexpr (!there)
        for (int64_t c = 0; c < count; c += kTileOut)
          store.store_rows(to + c, first + c, std::min(kTileOut, count - c), 0, P, width);
    }
  });
}

// The same by pairs, kTileOut inputs at a time: some outputs are packed, and their sums of many rows wait for the next.
void gemm_input_gradient_by_pairs(const at::Tensor& d_out, const at::Tensor& w, const at::Tensor& d_x, Into into) {
  const int64_t P = d_out.size(0), I = w.size(1), O = w.size(0), stride = stride_of(d_out);
  const TileStore store(d_x, into == Into::sum ? d_x : at::Tensor());
  parallel_for((I + kTileOut - 1) / kTileOut, grain_of_tiles(P, O), [&](int64_t begin, int64_t end) {
    std::vector<at::BFloat16> packed(std::min(O, kSumOutputs16) * kTileOut);
    std::vector<float> sums(std::min(P, kSumRows16) * kTileOut);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * kTileOut, count = std::min(kTileOut, I - first);
      for (int64_t row = 0; row < P; row += kSumRows16) {
        const int64_t rows = std::min(kSumRows16, P - row);
        for (int64_t o = 0; o < O; o += kSumOutputs16) {
          const int64_t inner = std::min(kSumOutputs16, O - o);
          pack_panels(numbers(w) + o * stride_of(w) + first, stride_of(w), inner, count, packed.data());
          brgemm(rows, count, inner, stride, count, kTileOut, o > 0, numbers(d_out) + row * stride + o, packed.data(),
                 sums.data());
        }
        store.store_rows(sums.data(), first, count, row, rows);
      }
    }
    release<at::BFloat16>();
  });
}

// Columns [first, first + outputs) of `rows` rows of d_out for add_tile: f32 in place, bf16 transposed.
void pack_outer(const float* from, int64_t stride, int64_t rows, int64_t outputs, float* to) {
  pack_inner(from, stride, rows, outputs, to);
}
void pack_outer(const at::BFloat16* from, int64_t stride, int64_t rows, int64_t outputs, at::BFloat16* to) {
  const uint16_t* in = bits16(from);
  const int64_t whole = outputs / 16 * 16;
  kernels::table().transpose_16(in, stride, rows, whole, bits16(to), rows);
  for (int64_t o = whole; o < outputs; ++o)
    for (int64_t r = 0; r < rows; ++r) bits16(to)[o * rows + r] = in[r * stride + o];
}

// sum [outputs, width] += the sum over rows of what pack_outer and pack_panels made.
void add_tile(int64_t outputs, int64_t width, int64_t rows, const float* d_out, const float* x, float* sum,
              int64_t stride) {
  const auto next = [&](int64_t k,
                        int64_t step) -> PrefetchPair {  // what follows of x; next to this tile of the sum, another
    const Prefetch more = prefetch_panels(x, aligned(width), rows, k + step, step);
    return {k == 0 ? prefetch_part(sum + width, stride, outputs, 0, kTileRows) : Prefetch(), more};
  };
  gemm_panels(outputs, width, rows, {d_out, 1, aligned(outputs)}, x, sum, stride, true, next);
}
void add_tile(int64_t outputs, int64_t width, int64_t rows, const at::BFloat16* d_out, const at::BFloat16* x,
              float* sum, int64_t stride) {
  brgemm(outputs, width, rows, rows, width, stride, true, d_out, x, sum);
}

// sum += d_out^T x, in the order of the rows.
template <class T>
void gemm_weight_gradient_tiled(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& sum) {
  constexpr int64_t kSummed = std::is_same_v<T, float> ? kSumInner : kSumRows16;
  const int64_t P = x.size(0), I = x.size(1), O = d_out.size(1), tiles = (I + kTileRows - 1) / kTileRows;
  const T *of = d_out.const_data_ptr<T>(), *rows_of_x = x.const_data_ptr<T>();
  float* total = sum.mutable_data_ptr<float>();
  at::Tensor packed = at::empty({std::min(P, kSummed) * aligned(I)}, x.options());
  T* columns_of_x = packed.mutable_data_ptr<T>();
  for (int64_t first = 0; first < P; first += kSummed) {
    const int64_t rows = std::min(kSummed, P - first);
    parallel_for(tiles, grain_of(kTileRows * rows), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin * kTileRows; c < std::min(I, end * kTileRows); c += kTileRows) {
        pack_panels(rows_of_x + first * stride_of(x) + c, stride_of(x), rows, std::min(kTileRows, I - c),
                    columns_of_x + c * rows);
      }
    });
    parallel_for((O + kTileOut - 1) / kTileOut, grain_of_tiles(rows, I), [&](int64_t begin, int64_t end) {
      std::vector<T> columns(kTileOut * rows);
      for (int64_t from = 0; from < I; from += kSumInputs) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t out = t * kTileOut, outputs = std::min(kTileOut, O - out);
          pack_outer(of + first * stride_of(d_out) + out, stride_of(d_out), rows, outputs, columns.data());
          for (int64_t c = from; c < std::min(I, from + kSumInputs); c += kTileRows) {
            add_tile(outputs, std::min(kTileRows, I - c), rows, columns.data(), columns_of_x + c * rows,
                     total + out * stride_of(sum) + c, stride_of(sum));
          }
        }
      }
      release<T>();
    });
  }
}

// --- other devices: the library's GEMMs ---------------------------------------------------------------------------

// to = onto + a b, in f32 or in the type of a.
void add_library_gemm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& onto, const at::Tensor& to) {
  at::Tensor out = to;
  if (out.scalar_type() == a.scalar_type()) {
    at::addmm_out(out, onto, a, b);
  } else {
    at::addmm_out(out, onto, a, b, out.scalar_type());
  }
}

void library_gemm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& to) {
  at::Tensor out = to;
  if (out.scalar_type() == a.scalar_type()) {
    at::mm_out(out, a, b);
  } else {
    at::mm_out(out, a, b, out.scalar_type());
  }
}

}  // namespace

int64_t gemm_rows(int64_t rows, at::ScalarType type) { return rows <= largest_small_m(type) ? rows : aligned(rows); }

void gemm(const at::Tensor& x, const at::Tensor& w, const at::Tensor& out, const at::Tensor& onto) {
  if (!x.is_cpu()) {
    onto.defined() ? add_library_gemm(x, w.t(), onto, out) : library_gemm(x, w.t(), out);
  } else if (is_bf16(x) && by_pairs(x.size(1))) {
    (is_small_m(x.size(0), at::kBFloat16) ? gemm_small_m : gemm_tiled<at::BFloat16>)(x, w, out, onto);
  } else {
    const at::Tensor wide = widened(x);
    const bool small_m = is_small_m(x.size(0), x.scalar_type());
    if (small_m && is_bf16(w) && w.size(1) % 2 != 0) return gemm_small_m(wide, widened(w), out, onto);
    const bool packs_rows = kernels::packs_rows(x.size(0), x.size(1), w.size(0));
    (small_m ? gemm_small_m : packs_rows ? gemm_tiled<float> : gemm_by_rows)(wide, w, out, onto);
  }
}

void gemm_input_gradient(const at::Tensor& d_out, const at::Tensor& w, const at::Tensor& d_x, Into into) {
  if (!w.is_cpu()) {
    into == Into::sum ? add_library_gemm(d_out, w, d_x, d_x) : library_gemm(d_out, w, d_x);
  } else if (!is_bf16(w)) {
    gemm_input_gradient_by_panels<float>(d_out, w, d_x, into);
  } else if (by_pairs(w.size(0))) {
    gemm_input_gradient_by_pairs(d_out, w, d_x, into);
  } else {
    gemm_input_gradient_by_panels<Bf16>(widened(d_out), w, d_x, into);
  }
}

void gemm_weight_gradient(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& sum) {
  if (!x.is_cpu()) {
    add_library_gemm(d_out.t(), x, sum, sum);
  } else if (is_bf16(x) && by_pairs(x.size(0))) {
    gemm_weight_gradient_tiled<at::BFloat16>(d_out, x, sum);
  } else {
    gemm_weight_gradient_tiled<float>(widened(d_out), widened(x), sum);
  }
}

namespace {

at::Tensor random_rows(int64_t rows, int64_t columns, at::ScalarType type) {
  at::Tensor x = at::empty({rows, columns}, at::kFloat);
  Rng rng(896, static_cast<uint64_t>(rows));
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = static_cast<float>(rng.normal());
  return x.to(type);
}

bool rows_are_alone(at::ScalarType type) {
  constexpr int64_t kRows = 256, kWidth = 896, kOutputs = 640;
  const int threads = at::get_num_threads();
  const at::Tensor x = random_rows(kRows, kWidth, type), w = random_rows(kOutputs, kWidth, type);
  at::Tensor all = at::empty({kRows, kOutputs}, at::kFloat), some = at::empty({16, kOutputs}, at::kFloat);
  gemm(x, w, all);
  at::set_num_threads(1);
  bool equal = true;
  for (int64_t first = 0; first < kRows; first += 16) {
    gemm(x.narrow(0, first, 16), w, some);
    equal = equal && some.equal(all.narrow(0, first, 16));
  }
  for (int64_t rows : {1, 3, 8, 13}) {
    const int64_t given = gemm_rows(rows, type);
    at::Tensor few = at::empty({given, kOutputs}, at::kFloat);
    gemm(x.narrow(0, 0, given), w, few);
    equal = equal && few.equal(all.narrow(0, 0, given));
  }
  at::set_num_threads(threads);
  return equal;
}

}  // namespace

std::string check_rows() {
  const bool f32 = rows_are_alone(at::kFloat), bf16 = rows_are_alone(at::kBFloat16);
  if (f32 && bf16) return "equal bits in f32 and bf16: sampler and trainer agree";
  const char* where = f32 ? "bf16" : bf16 ? "f32" : "f32 and bf16";
  return std::string("a row of a GEMM depends on the others in ") + where +
         ": sampler and trainer will differ in the last bits; please report this machine";
}

}  // namespace ucas

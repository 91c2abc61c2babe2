// bf16 products run on oneDNN's micro-kernel inside LibTorch (cpublas::brgemm), which sums tiles in f32. It multiplies
// plain rows with a packed matrix. Parameters take the part of the rows, so they need no second, packed form:
//   (x W^T)^T = W x^T   and   sum += d_out^T x
// and what is packed is the smaller x. Each number of the first product then is one lane's sum over I in a fixed order.
#include "model/product.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/dispatch.h"
#include "model/block.h"

namespace ucas {

namespace {

using at::native::cpublas::brgemm;
using at::native::cpublas::brgemm_release;

constexpr int64_t kTileOut = 64;      // outputs of a tile
constexpr int64_t kTileRows = 64;     // rows of a tile
constexpr int64_t kSumRows16 = 1024;  // rows summed at a time: their pairs stay in the second-level cache

bool is_bf16(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16; }
// Rows by strides: the last dimension is dense.
int64_t stride_of(const at::Tensor& x) { return x.stride(0); }
const at::BFloat16* numbers(const at::Tensor& x) { return x.const_data_ptr<at::BFloat16>(); }
uint16_t* bits16(at::BFloat16* x) { return reinterpret_cast<uint16_t*>(x); }
const uint32_t* pairs(const at::BFloat16* x) { return reinterpret_cast<const uint32_t*>(x); }

// The micro-kernel takes inputs in pairs.
bool by_tiles(int64_t inputs) { return inputs % 2 == 0 && kernels::bf16_products().fast; }

at::Tensor widened(const at::Tensor& x) { return is_bf16(x) ? x.to(at::kFloat) : x; }

// x [P, I] as [P / tile][I / 2][tile][2], the tiles kTileRows wide but for the last.
at::Tensor packed_rows(const at::Tensor& x) {
  const int64_t P = x.size(0), I = x.size(1), stride = stride_of(x);
  at::Tensor packed = at::empty({P, I}, x.options());
  const at::BFloat16* from = numbers(x);
  auto* to = reinterpret_cast<uint32_t*>(packed.mutable_data_ptr<at::BFloat16>());
  UCAS_CHECK(stride % 2 == 0 && reinterpret_cast<uintptr_t>(from) % 4 == 0, "rows begin at a pair");
  at::parallel_for(0, (P + kTileRows - 1) / kTileRows, grain_of(kTileRows * I), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kTileRows, rows = std::min(kTileRows, P - first);
      const int64_t whole = I / 2 / 16 * 16;
      const uint32_t* rows_from = pairs(from + first * stride);
      kernels::table().transpose_32(rows_from, stride / 2, rows, whole, to + first * (I / 2), rows);
      for (int64_t pair = whole; pair < I / 2; ++pair)
        for (int64_t r = 0; r < rows; ++r) to[first * (I / 2) + pair * rows + r] = rows_from[r * (stride / 2) + pair];
    }
  });
  return packed;
}

// Where a tile [outputs][rows] of W x^T goes.
class TileStore {
 public:
  TileStore(const at::Tensor& out, const at::Tensor& onto) : out_(out), onto_(onto) {}

  // `scratch` holds as many floats as the tile.
  void operator()(const float* tile, int64_t first_out, int64_t outputs, int64_t first_row, int64_t rows,
                  float* scratch) const {
    const kernels::Table& kernel = kernels::table();
    const int64_t whole = outputs / 16 * 16;
    kernel.transpose_32(reinterpret_cast<const uint32_t*>(tile), rows, whole, rows,
                        reinterpret_cast<uint32_t*>(scratch), kTileOut);
    for (int64_t o = whole; o < outputs; ++o)
      for (int64_t r = 0; r < rows; ++r) scratch[r * kTileOut + o] = tile[o * rows + r];
    for (int64_t r = 0; r < rows; ++r) {
      float* row = scratch + r * kTileOut;
      if (is_bf16(out_)) {
        store<Bf16>(row, first_row + r, first_out, outputs);
      } else {
        store<float>(row, first_row + r, first_out, outputs);
      }
    }
  }

 private:
  template <class E>
  void store(float* row, int64_t at_row, int64_t at_out, int64_t outputs) const {
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
  const at::Tensor &out_, &onto_;
};

void product_by_tiles(const at::Tensor& x, const at::Tensor& w, const at::Tensor& out, const at::Tensor& onto) {
  const int64_t P = x.size(0), I = x.size(1), O = w.size(0);
  const at::Tensor packed = packed_rows(x);
  const at::BFloat16 *weight = numbers(w), *rows_of_x = numbers(packed);
  const TileStore put(out, onto);
  at::parallel_for(0, (O + kTileOut - 1) / kTileOut, grain_of(P * I), [&](int64_t begin, int64_t end) {
    float tile[kTileOut * kTileRows], scratch[kTileOut * kTileRows];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * kTileOut, outputs = std::min(kTileOut, O - first);
      for (int64_t row = 0; row < P; row += kTileRows) {
        const int64_t rows = std::min(kTileRows, P - row);
        brgemm(outputs, rows, I, stride_of(w), rows, rows, false, weight + first * stride_of(w), rows_of_x + row * I,
               tile);
        put(tile, first, outputs, row, rows, scratch);
      }
    }
    brgemm_release();
  });
}

// Rows [first, first + rows) of x [P, I] as [I / kTileRows][rows / 2][kTileRows][2].
void pack_pairs(const at::Tensor& x, int64_t first, int64_t rows, uint16_t* to) {
  const int64_t I = x.size(1), stride = stride_of(x);
  const uint16_t* from = reinterpret_cast<const uint16_t*>(numbers(x)) + first * stride;
  at::parallel_for(0, (I + kTileRows - 1) / kTileRows, grain_of(kTileRows * rows), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t column = t * kTileRows, width = std::min(kTileRows, I - column);
      uint16_t* tile = to + column * rows;
      for (int64_t r = 0; r < rows; r += 2) {
        const uint16_t *a = from + r * stride + column, *b = a + stride;
        uint16_t* pair = tile + r * width;
        for (int64_t c = 0; c < width; ++c) {
          pair[2 * c] = a[c];
          pair[2 * c + 1] = b[c];
        }
      }
    }
  });
}

// Columns [first, first + outputs) of `rows` rows as [outputs][rows].
void transpose_columns(const at::BFloat16* from, int64_t stride, int64_t rows, int64_t outputs, uint16_t* to) {
  const auto* in = reinterpret_cast<const uint16_t*>(from);
  const int64_t whole = outputs / 16 * 16;
  kernels::table().transpose_16(in, stride, rows, whole, to, rows);
  for (int64_t o = whole; o < outputs; ++o)
    for (int64_t r = 0; r < rows; ++r) to[o * rows + r] = in[r * stride + o];
}

void weight_product_by_tiles(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& sum) {
  const int64_t P = x.size(0), I = x.size(1), O = d_out.size(1);
  UCAS_CHECK(P % 16 == 0, "rows are padded");
  at::Tensor packed = at::empty({std::min(P, kSumRows16) * I}, x.options());
  float* total = sum.mutable_data_ptr<float>();
  for (int64_t first = 0; first < P; first += kSumRows16) {
    const int64_t rows = std::min(kSumRows16, P - first);
    pack_pairs(x, first, rows, bits16(packed.mutable_data_ptr<at::BFloat16>()));
    at::parallel_for(0, (O + kTileOut - 1) / kTileOut, grain_of(rows * I), [&](int64_t begin, int64_t end) {
      std::vector<at::BFloat16> columns(kTileOut * rows);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t out = t * kTileOut, outputs = std::min(kTileOut, O - out);
        transpose_columns(numbers(d_out) + first * stride_of(d_out) + out, stride_of(d_out), rows, outputs,
                          bits16(columns.data()));
        for (int64_t c = 0; c < I; c += kTileRows) {
          const int64_t width = std::min(kTileRows, I - c);
          brgemm(outputs, width, rows, rows, width, stride_of(sum), true, columns.data(), numbers(packed) + c * rows,
                 total + out * stride_of(sum) + c);
        }
      }
      brgemm_release();
    });
  }
}

}  // namespace

void product(const at::Tensor& x, const at::Tensor& w, const at::Tensor& out, const at::Tensor& onto) {
  at::Tensor to = out;
  if (is_bf16(x) && by_tiles(x.size(1))) {
    product_by_tiles(x, w, out, onto);
  } else if (is_bf16(x)) {
    const at::Tensor sum = at::mm(widened(x), widened(w).t());
    to.copy_(onto.defined() ? at::add(widened(onto), sum) : sum);
  } else if (onto.defined()) {
    at::addmm_out(to, onto, x, w.t());
  } else {
    at::mm_out(to, x, w.t());
  }
}

void input_product(const at::Tensor& d_out, const at::Tensor& w, const at::Tensor& d_x, Into into) {
  at::Tensor to = d_x;
  if (is_bf16(w) && !kernels::bf16_products().fast) {
    const at::Tensor sum = at::mm(widened(d_out), widened(w));
    to.copy_(into == Into::sum ? at::add(widened(d_x), sum) : sum);
  } else if (into == Into::sum) {
    at::addmm_out(to, d_x, d_out, w);
  } else {
    at::mm_out(to, d_out, w);
  }
}

void weight_product(const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& sum) {
  at::Tensor to = sum;
  if (is_bf16(x) && by_tiles(x.size(0))) {
    weight_product_by_tiles(d_out, x, sum);
  } else {
    at::addmm_out(to, sum, widened(d_out).t(), widened(x));
  }
}

}  // namespace ucas

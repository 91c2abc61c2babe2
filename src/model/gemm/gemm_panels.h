// GEMMs of f32 rows with packed columns, each number one chain of multiply-adds (kernels::Product), and what memory
// is fetched while they run. Columns are packed in panels [columns / kPanel][inner][kPanel], the last one as wide as
// the next multiple of 16 that holds its columns. Pointers are not kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/dispatch.h"
#include "model/backend/block.h"

namespace ucas {

constexpr int64_t kPanel = 32;  // columns: with 256 inner numbers they stay in the first cache

inline int64_t lines_of(int64_t bytes) { return (bytes + 63) / 64; }

// Numbers [first, first + count) of `rows` rows.
template <class T>
kernels::Prefetch prefetch_part(const T* from, int64_t stride, int64_t rows, int64_t first, int64_t count) {
  constexpr int64_t bytes = sizeof(T);
  return {from + first, stride * bytes, lines_of(count * bytes), rows};
}

// A part [first, first + count) of the inner numbers of panels, beyond their end the first ones of as many that follow.
inline kernels::Prefetch prefetch_panels(const float* b, int64_t columns, int64_t inner, int64_t first, int64_t count) {
  const int64_t panels = (columns + kPanel - 1) / kPanel;
  if (first >= inner) return prefetch_panels(b + columns * inner, columns, inner, 0, count);
  return prefetch_part(b, inner * kPanel, panels, first * kPanel, count * kPanel);
}

// One of `shares` shares of the rows.
inline kernels::Prefetch slice_of(const kernels::Prefetch& of, int64_t slice, int64_t slices) {
  const int64_t first = of.count * slice / slices, end = of.count * (slice + 1) / slices;
  return {static_cast<const char*>(of.rows) + first * of.stride, of.stride, of.lines, end - first};
}

struct PrefetchPair {
  kernels::Prefetch first = {}, rest = {};  // while the first panel is multiplied, and the others
};

struct Rows {  // [rows][inner] by strides
  const float* a;
  int64_t a_row, a_inner;
};

// c [rows, columns] (+)= a b, b in panels, c by its stride; some of the inner numbers at a time. next(k, step): what to
// fetch while those from k on are multiplied.
template <class Fetch>
void gemm_panels(int64_t rows, int64_t columns, int64_t inner, Rows a, const float* b, float* c, int64_t c_stride,
                 bool add, const Fetch& next) {
  const int64_t width = aligned(columns);
  std::vector<float> padded(width == columns ? 0 : rows * width);
  float* to = padded.empty() ? c : padded.data();
  const int64_t stride = padded.empty() ? c_stride : width;
  for (int64_t r = 0; r < rows && !padded.empty() && add; ++r) std::copy_n(c + r * c_stride, columns, to + r * width);
  // Parts of one length, so that each has the time to fetch another.
  const int64_t parts = (inner + kernels::kSumInner - 1) / kernels::kSumInner;
  const int64_t step = parts == 0 ? 1 : aligned((inner + parts - 1) / parts);
  const int64_t others = (width - 1) / kPanel;
  for (int64_t k = 0; k < inner; k += step) {
    const auto [first, rest] = next(k, step);
    for (int64_t p = 0; p < width; p += kPanel) {
      const int64_t panel = std::min(kPanel, width - p);
      kernels::table().gemm({rows, panel, std::min(step, inner - k), a.a + k * a.a_inner, a.a_row, a.a_inner,
                             b + p * inner + k * panel, panel, to + p, stride, add || k > 0,
                             p == 0 ? first : slice_of(rest, p / kPanel - 1, others)});
    }
  }
  for (int64_t r = 0; r < rows && !padded.empty(); ++r) std::copy_n(to + r * width, columns, c + r * c_stride);
}

}  // namespace ucas

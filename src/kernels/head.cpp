#include "kernels/head.h"

#include <algorithm>
#include <vector>

#include "base/process/thread_pool.h"

namespace ucas::kernels {

namespace {

constexpr int64_t kPanel = 64;            // outputs, rows or inputs of a tile of GEMMs
constexpr double kWorthThreads = 4e6;     // multiply-adds below which one thread is quicker
constexpr int64_t kTogether = kSumInner;  // of a chain at a time

int64_t whole_vectors(int64_t n) { return (n + 15) / 16 * 16; }

// c [rows, columns] (+)= a b: a by strides, b [inner][width] with width = whole_vectors(columns), c by its stride.
struct Strided {
  const float* from;
  int64_t row, inner;
};
void chains(int64_t rows, int64_t columns, int64_t inner, Strided a, const float* b, float* c, int64_t c_stride,
            bool add) {
  const int64_t width = whole_vectors(columns);
  std::vector<float> padded(width == columns ? 0 : rows * width);
  float* to = padded.empty() ? c : padded.data();
  const int64_t stride = padded.empty() ? c_stride : width;
  for (int64_t r = 0; r < rows && !padded.empty() && add; ++r) std::copy_n(c + r * c_stride, columns, to + r * width);
  const int64_t step = kTogether * kPanel / width;
  for (int64_t k = 0; k < inner; k += step) {
    table().gemm({rows, width, std::min(step, inner - k), a.from + k * a.inner, a.row, a.inner, b + k * width, width,
                  to, stride, add || k > 0});
  }
  for (int64_t r = 0; r < rows && !padded.empty(); ++r) std::copy_n(to + r * width, columns, c + r * c_stride);
}

// to [columns][to_stride] = the transpose of from [rows][columns], zero between rows and to_stride.
void turn(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to, int64_t to_stride) {
  const int64_t whole_rows = rows / 16 * 16, whole = columns / 16 * 16;
  table().transpose_32(reinterpret_cast<const uint32_t*>(from), from_stride, whole_rows, whole,
                       reinterpret_cast<uint32_t*>(to), to_stride);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < whole_rows ? whole : 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
}

// Columns [first, first + count) of rows as [rows][whole_vectors(count)], zero beyond.
void pack(const float* from, int64_t stride, int64_t rows, int64_t count, float* to) {
  const int64_t width = whole_vectors(count);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * stride, count, to + r * width);
    std::fill(to + r * width + count, to + (r + 1) * width, 0.0f);
  }
}

// `count` rows of W from `first` on, columns [column, column + width): in place, or widened into `room`.
struct Rows {
  const float* from;
  int64_t stride;
};
Rows rows_of(const HeadInput& in, int64_t first, int64_t count, int64_t column, int64_t width,
             std::vector<float>& room) {
  if (in.weight.f32 != nullptr) return {in.weight.f32 + first * in.width + column, in.width};
  room.resize(count * width);
  for (int64_t r = 0; r < count; ++r)
    table().widen(in.weight.bf16 + (first + r) * in.width + column, width, room.data() + r * width);
  return {room.data(), width};
}

// Some rows of `hidden` and their logits in one tile of the vocabulary.
class Tile {
 public:
  Tile(const HeadInput& in, int64_t threads)
      : in_(in), threads_(threads), logits_(std::min(in.rows, kHeadRows) * std::min(in.vocab, kTile)) {}

  int64_t count() const { return count_; }    // rows
  int64_t column() const { return column_; }  // the tile's first
  int64_t columns() const { return columns_; }
  float* row(int64_t i) { return logits_.data() + i * columns_; }
  const float* hidden() const { return rows_.data(); }  // [count, D]

  void take_rows(const int64_t* which, int64_t count) {
    count_ = count;
    const int64_t D = in_.width;
    rows_.resize(count * D);
    packed_.assign(whole_vectors(count) * D, 0.0f);
    for (int64_t i = 0; i < count; ++i) std::copy_n(in_.hidden + which[i] * D, D, rows_.data() + i * D);
    for (int64_t first = 0; first < count; first += kPanel) {
      const int64_t some = std::min(kPanel, count - first);
      turn(rows_.data() + first * D, D, some, D, packed_.data() + first * D, whole_vectors(some));
    }
  }

  // Parameters take the part of the rows, as in model/gemm/gemm.cpp: (h W^T)^T = W h^T.
  void take_columns(int64_t column) {
    column_ = column;
    columns_ = std::min(kTile, in_.vocab - column);
    const int64_t D = in_.width;
    panels(columns_, [&](int64_t first, int64_t outputs) {
      std::vector<float> widened, tile(kPanel * kPanel), turned(kPanel * kPanel);
      const Rows w = rows_of(in_, column_ + first, outputs, 0, D, widened);
      for (int64_t r = 0; r < count_; r += kPanel) {
        const int64_t some = std::min(kPanel, count_ - r), width = whole_vectors(some);
        chains(outputs, width, D, {w.from, w.stride, 1}, packed_.data() + r * D, tile.data(), width, false);
        turn(tile.data(), width, outputs, some, turned.data(), kPanel);
        for (int64_t i = 0; i < some; ++i) std::copy_n(turned.data() + i * kPanel, outputs, row(r + i) + first);
      }
    });
  }

  template <class Visit>
  void each_row(Visit visit) {
    share_out(count_, 1, threads_, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) visit(static_cast<int64_t>(i));
    });
  }

  // visit(first, count) for the panels of [0, n).
  template <class Visit>
  void panels(int64_t n, Visit visit) {
    share_out(n, kPanel, threads_, [&](size_t first, size_t last) {
      visit(static_cast<int64_t>(first), static_cast<int64_t>(last - first));
    });
  }

  // d_rows [count, D] += what the logits hold times W.
  void add_hidden(float* d_rows) {
    const int64_t D = in_.width;
    panels(D, [&](int64_t first, int64_t inputs) {
      std::vector<float> widened, packed(std::min(columns_, kTogether) * kPanel);
      for (int64_t o = 0; o < columns_; o += kTogether) {
        const int64_t outputs = std::min(kTogether, columns_ - o);
        const Rows w = rows_of(in_, column_ + o, outputs, first, inputs, widened);
        pack(w.from, w.stride, outputs, inputs, packed.data());
        chains(count_, inputs, outputs, {row(0) + o, columns_, 1}, packed.data(), d_rows + first, D, true);
      }
    });
  }

  // d_weight [V, D] += what the logits hold, turned, times the rows.
  void add_weight(float* d_weight) {
    const int64_t D = in_.width;
    std::vector<float> columns_of_h(count_ * whole_vectors(D));
    panels(D, [&](int64_t first, int64_t inputs) {
      pack(rows_.data() + first, D, count_, inputs, columns_of_h.data() + first * count_);
    });
    panels(columns_, [&](int64_t first, int64_t outputs) {
      const int64_t width = whole_vectors(outputs);
      std::vector<float> packed(count_ * width);
      pack(row(0) + first, columns_, count_, outputs, packed.data());
      for (int64_t c = 0; c < D; c += kPanel) {
        chains(outputs, std::min(kPanel, D - c), count_, {packed.data(), 1, width}, columns_of_h.data() + c * count_,
               d_weight + (column_ + first) * D + c, D, true);
      }
    });
  }

 private:
  const HeadInput& in_;
  int64_t threads_, count_ = 0, column_ = 0, columns_ = 0;
  std::vector<float> logits_, rows_, packed_;
};

int64_t threads_for(const HeadInput& in, int64_t rows, int64_t threads) {
  const double work =
      static_cast<double>(rows) * static_cast<double>(std::min(in.vocab, kTile)) * static_cast<double>(in.width);
  return work < kWorthThreads ? 1 : threads;
}

// visit(tile, the numbers of its rows) for each kHeadRows of `rows` and each tile of the vocabulary.
template <class Begin, class Visit, class End>
void each_tile(const HeadInput& in, const std::vector<int64_t>& rows, int64_t threads, Begin begin, Visit visit,
               End end) {
  const auto all = static_cast<int64_t>(rows.size());
  Tile tile(in, threads_for(in, std::min(all, kHeadRows), threads));
  for (int64_t first = 0; first < all; first += kHeadRows) {
    const int64_t* which = rows.data() + first;
    tile.take_rows(which, std::min(kHeadRows, all - first));
    begin(tile);
    for (int64_t column = 0; column < in.vocab; column += kTile) {
      tile.take_columns(column);
      visit(tile, which);
    }
    end(tile, which);
  }
}

}  // namespace

void head_stats(const HeadInput& in, const HeadOutput& out, int64_t threads) {
  std::vector<int64_t> rows(in.rows);
  for (int64_t r = 0; r < in.rows; ++r) rows[r] = r;
  std::vector<RowStats> stats;
  each_tile(
      in, rows, threads, [&](Tile& tile) { stats.assign(tile.count(), {}); },
      [&](Tile& tile, const int64_t* which) {
        tile.each_row([&](int64_t i) {
          row_stats(tile.row(i), tile.columns(), in.inverse_temperature, stats[i]);
          const int64_t y = in.target[which[i]] - tile.column();
          if (y >= 0 && y < tile.columns()) out.logit[which[i]] = tile.row(i)[y];
        });
      },
      [&](Tile& tile, const int64_t* which) {
        for (int64_t i = 0; i < tile.count(); ++i) {
          const int64_t r = which[i];
          const TokenStats token = token_stats(stats[i], out.logit[r], in.inverse_temperature, in.vocab);
          out.logprob[r] = token.logprob;
          out.entropy[r] = token.entropy;
          out.confidence[r] = token.confidence;
          out.margin[r] = token.margin;
          out.lse[r] = static_cast<float>(lse_of(stats[i]));
        }
      });
}

void head_gradient(const HeadInput& in, const float* lse, const float* entropy, const HeadDerivatives& d,
                   float* d_hidden, float* d_weight, int64_t threads) {
  std::vector<int64_t> active;
  for (int64_t r = 0; r < in.rows; ++r)
    if (d.logprob[r] != 0 || d.entropy[r] != 0 || d.confidence[r] != 0) active.push_back(r);
  const float inverse_vocab = 1.0f / static_cast<float>(in.vocab);
  std::vector<float> d_rows;
  each_tile(
      in, active, threads, [&](Tile& tile) { d_rows.assign(d_hidden == nullptr ? 0 : tile.count() * in.width, 0.0f); },
      [&](Tile& tile, const int64_t* which) {
        tile.each_row([&](int64_t i) {
          const int64_t r = which[i];
          const RowGradient row{
              lse[r], entropy[r], d.logprob[r], d.entropy[r], d.confidence[r], in.inverse_temperature, inverse_vocab};
          row_gradient(tile.row(i), tile.columns(), in.target[r] - tile.column(), row, tile.row(i));
        });
        if (d_hidden != nullptr) tile.add_hidden(d_rows.data());
        if (d_weight != nullptr) tile.add_weight(d_weight);
      },
      [&](Tile& tile, const int64_t* which) {
        for (int64_t i = 0; i < tile.count() && d_hidden != nullptr; ++i)
          for (int64_t k = 0; k < in.width; ++k) d_hidden[which[i] * in.width + k] += d_rows[i * in.width + k];
      });
}

}  // namespace ucas::kernels

// Kernels of the rows of a block; arguments and equations: kernels/gpu/kernels.h. All of them are bound by memory:
// consecutive lanes take consecutive groups of 8 or 16 bytes, and load several before they need the first.
#pragma once

#include "kernels/gpu/kernels.h"

namespace ucas::gpu {

// --- pieces of rows -------------------------------------------------------------------------------------------------

UCAS_ON_DEVICE Floatx4 zero4() { return {{0, 0, 0, 0}}; }

UCAS_ON_DEVICE float sigmoid(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1, 1 + __expf(-x));  // some units of the last place of f32, where bf16 is written
#else
  return 1 / (1 + expf(-x));
#endif
}

// Of the numbers that a norm divides by one scale: x x, and for the backward w x d_out, too.
struct NormSums {
  float squares, dot;
};

// --- whole rows -----------------------------------------------------------------------------------------------------

struct EmbedRows {
  static constexpr int kThreads = 128;
  static constexpr const char* kName = "embed";
  Embed a;

  Grid grid() const { return {a.rows, (a.width + kThreads * 4 - 1) / (kThreads * 4)}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    // A row that could not be sampled has token -1: the run ends for it, but not before this step is over.
    const int64_t token = a.token[thread_block.x] < 0 ? 0 : a.token[thread_block.x];
    thread_block.each([&](int lane) {
      const int64_t i = (thread_block.y * kThreads + lane) * 4;
      if (i < a.width) store4(a.x + thread_block.x * a.width + i, load4(a.table + token * a.width + i));
    });
  }
};

struct AddNormRows {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 4;
  static constexpr int kTogether = 4;  // pieces of a lane: x may be `sum`, so that a load waits for stores before it
  static constexpr const char* kName = "add_norm";
  AddNorm a;

  Grid grid() const { return {a.rows}; }
  int shared_bytes() const { return static_cast<int>(a.width * sizeof(float)); }  // the row's sum
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const int width = static_cast<int>(a.width);
    const int64_t row = thread_block.x * a.width;
    float* kept = thread_block.template shared<float>();
    const float squares = thread_block.sum([&](int lane) {
      float sum = 0;
      for (int i = lane * 4; i < width; i += kThreads * 4 * kTogether) sum += add(row, i, kept);
      return sum;
    });
    const float scale = 1 / sqrtf(squares / static_cast<float>(width) + a.eps);
    thread_block.each([&](int lane) {
      for (int i = lane * 4; i < width; i += kThreads * 4) {  // what this lane kept itself
        Floatx4 out = load4(kept + i);
        const Floatx4 w = load4(a.w + i);
        UCAS_UNROLL
        for (int j = 0; j < 4; ++j) out.v[j] = w.v[j] * (out.v[j] * scale);
        if (a.out_float != nullptr) store4(a.out_float + row + i, out);
        if (a.out != nullptr) store4(a.out + row + i, out);
      }
    });
  }

 private:
  // Of the pieces of a lane from i on: their sums, kept; the squares of these.
  UCAS_ON_DEVICE float add(int64_t row, int i, float* kept) const {
    const int width = static_cast<int>(a.width);
    Floatx4 x[kTogether], y[kTogether];
    UCAS_UNROLL
    for (int k = 0; k < kTogether; ++k) {
      const int at = i + k * kThreads * 4;
      x[k] = at < width ? load4(a.x + row + at) : zero4();
      y[k] = at < width && a.y != nullptr ? load4(a.y + row + at) : zero4();
    }
    float squares = 0;
    UCAS_UNROLL
    for (int k = 0; k < kTogether; ++k) {
      const int at = i + k * kThreads * 4;
      if (at >= width) continue;
      UCAS_UNROLL
      for (int j = 0; j < 4; ++j) {
        x[k].v[j] += y[k].v[j];
        squares += x[k].v[j] * x[k].v[j];
      }
      if (a.y != nullptr) store4(a.sum + row + at, x[k]);
      store4(kept + at, x[k]);
    }
    return squares;
  }
};

// With xh = x r:  dx += r (w d - xh mean(w d xh)),  dw = d xh. A block takes a part's rows, some at once, and goes over
// them twice; the second time they are near. Where no dw is wanted a part is as short as those.
struct NormBackwardRows {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 2;
  static constexpr int kTogether = 4;  // rows
  static constexpr const char* kName = "norm_backward";
  NormBackward a;

  Grid grid() const { return {a.dw != nullptr ? norm_parts(a.rows) : (a.rows + kTogether - 1) / kTogether}; }
  int shared_bytes() const { return a.dw != nullptr ? static_cast<int>(a.width * sizeof(float)) : 0; }  // dw so far
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    a.d_out != nullptr ? part(thread_block, a.d_out) : part(thread_block, a.d_out_float);
  }

 private:
  template <class ThreadBlock, class Number>
  UCAS_ON_DEVICE void part(ThreadBlock& thread_block, const Number* d_out) const {
    const int64_t rows_of_part = a.dw != nullptr ? kRowsOfPart : kTogether;
    const int64_t begin = thread_block.x * rows_of_part;
    const int64_t end = begin + rows_of_part < a.rows ? begin + rows_of_part : a.rows;
    for (int64_t first = begin; first < end; first += kTogether) {
      const int rows = end - first < kTogether ? static_cast<int>(end - first) : kTogether;
      const Sums sums = thread_block.sum([&](int lane) { return sums_of(d_out, first, rows, lane); });
      float* dw_before = first == begin ? nullptr : thread_block.template shared<float>();
      float* dw_after =
          first + kTogether < end ? thread_block.template shared<float>() : a.dw + thread_block.x * a.width;
      if (a.dw == nullptr) dw_after = nullptr;
      thread_block.each([&](int lane) { differentiate(d_out, first, rows, sums, lane, dw_before, dw_after); });
    }
  }

  struct Sums {
    NormSums of_row[kTogether];
    UCAS_ON_DEVICE Sums operator+(const Sums& other) const {
      Sums sum;
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        sum.of_row[k].squares = of_row[k].squares + other.of_row[k].squares;
        sum.of_row[k].dot = of_row[k].dot + other.of_row[k].dot;
      }
      return sum;
    }
  };

  template <class Number>
  UCAS_ON_DEVICE Sums sums_of(const Number* d_out, int64_t first, int rows, int lane) const {
    const int width = static_cast<int>(a.width);
    Sums sums = {};
    for (int i = lane * 4; i < width; i += kThreads * 4) {
      const Floatx4 w = load4(a.w + i);
      Floatx4 x[kTogether], d[kTogether];
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        const int64_t at = (first + k) * width + i;
        x[k] = k < rows ? load4(a.x + at) : zero4();
        d[k] = k < rows ? load4(d_out + at) : zero4();
      }
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        UCAS_UNROLL
        for (int j = 0; j < 4; ++j) {
          sums.of_row[k].squares += x[k].v[j] * x[k].v[j];
          sums.of_row[k].dot += w.v[j] * d[k].v[j] * x[k].v[j];
        }
      }
    }
    return sums;
  }

  template <class Number>
  UCAS_ON_DEVICE void differentiate(const Number* d_out, int64_t first, int rows, const Sums& sums, int lane,
                                    const float* dw_before, float* dw_after) const {
    const int width = static_cast<int>(a.width);
    float scale[kTogether], mean[kTogether];  // mean: of w d xh, times r
    UCAS_UNROLL
    for (int k = 0; k < kTogether; ++k) {
      scale[k] = 1 / sqrtf(sums.of_row[k].squares / static_cast<float>(width) + a.eps);
      mean[k] = sums.of_row[k].dot * scale[k] * scale[k] / static_cast<float>(width);
    }
    for (int i = lane * 4; i < width; i += kThreads * 4) {
      const Floatx4 w = load4(a.w + i);
      Floatx4 dw = dw_before != nullptr ? load4(dw_before + i) : zero4();
      Floatx4 x[kTogether], d[kTogether], dx[kTogether];
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        const int64_t at = (first + k) * width + i;
        x[k] = k < rows ? load4(a.x + at) : zero4();
        d[k] = k < rows ? load4(d_out + at) : zero4();
        dx[k] = k < rows ? load4(a.dx + at) : zero4();
      }
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        if (k >= rows) continue;
        const int64_t at = (first + k) * width + i;
        UCAS_UNROLL
        for (int j = 0; j < 4; ++j) {
          dx[k].v[j] += scale[k] * (w.v[j] * d[k].v[j] - x[k].v[j] * mean[k]);
          dw.v[j] += d[k].v[j] * (x[k].v[j] * scale[k]);
        }
        store4(a.dx + at, dx[k]);
        if (a.dx_narrow != nullptr) store4(a.dx_narrow + at, dx[k]);
      }
      if (dw_after != nullptr) store4(dw_after + i, dw);
    }
  }
};

// --- heads ----------------------------------------------------------------------------------------------------------

// A lane's share of a head: four numbers of its first half, and the four of the second that rotation pairs with them.
struct PairedFours {
  Floatx4 low, high;
};
template <class Number>
UCAS_ON_DEVICE PairedFours load_paired(const Number* from, int half) {
  return {load4(from), load4(from + half)};
}
template <class Number>
UCAS_ON_DEVICE void store_paired(Number* to, int half, const PairedFours& x) {
  store4(to, x.low);
  store4(to + half, x.high);
}
UCAS_ON_DEVICE void add_to(PairedFours& sum, const PairedFours& x) {
  UCAS_UNROLL
  for (int j = 0; j < 4; ++j) {
    sum.low.v[j] += x.low.v[j];
    sum.high.v[j] += x.high.v[j];
  }
}
UCAS_ON_DEVICE float round_trip(float x) { return widen(narrow(x)); }

// By the angle of the row's position; direction -1: back again.
UCAS_ON_DEVICE void rotate(PairedFours& x, const float* cosines, const float* sines, int64_t at, float direction) {
  const Floatx4 cosine = load4(cosines + at), sine = load4(sines + at);
  UCAS_UNROLL
  for (int j = 0; j < 4; ++j) {
    const float low = x.low.v[j], high = x.high.v[j], s = direction * sine.v[j];
    x.low.v[j] = low * cosine.v[j] - high * s;
    x.high.v[j] = high * cosine.v[j] + low * s;
  }
}

// Heads of all rows follow each other, and a block takes as many as its lanes have shares for.
struct RopeAndStoreKvRows {
  static constexpr int kThreads = 128;
  static constexpr int kResident = 16;
  static constexpr const char* kName = "apply_rope_and_store_kv";
  RopeAndStoreKv a;

  Grid grid() const {
    const int64_t heads = a.rows * (a.H + 2 * a.K), heads_of_block = kThreads / (a.d / 8);
    return {(heads + heads_of_block - 1) / heads_of_block};
  }
  int shared_bytes() const { return kThreads * static_cast<int>(sizeof(float)); }  // the squares of each share
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    typename ThreadBlock::template Local<PairedFours> kept;
    float* squares = thread_block.template shared<float>();
    thread_block.each([&](int lane) {
      const Share share = share_of(thread_block.x, lane);
      if (!share.works) return;
      kept[lane] = read(share);
      squares[lane] = share.norm != nullptr ? squares_of(kept[lane]) : 0;
    });
    thread_block.each([&](int lane) {
      const Share share = share_of(thread_block.x, lane);
      if (!share.works) return;
      if (share.norm != nullptr) normalize(kept[lane], share, squares + (lane - share.column / 4));
      if (!share.is_value) {
        const int half = static_cast<int>(a.d / 2);
        rotate(kept[lane], a.cosines, a.sines, static_cast<int64_t>(a.position[share.row]) * half + share.column, 1);
      }
      write(share, kept[lane]);
    });
  }

 private:
  struct Share {
    bool works;     // false: a lane too many, or a value that stays what it is
    bool is_value;  // a head of v
    int row, head;  // head: among those of q, k and v
    int column;     // of the first half
    const float* norm;
  };
  UCAS_ON_DEVICE Share share_of(int64_t block, int lane) const {
    const int lanes = static_cast<int>(a.d / 8), heads_of_block = kThreads / lanes;
    const auto heads = static_cast<uint32_t>(a.H + 2 * a.K);
    const int in_block = lane / lanes;
    const uint32_t at = static_cast<uint32_t>(block) * heads_of_block + in_block;
    Share share;
    share.row = static_cast<int>(at / heads);
    share.head = static_cast<int>(at % heads);
    share.column = 4 * (lane - in_block * lanes);
    share.is_value = share.head >= a.H + a.K;
    share.norm = share.is_value ? nullptr : share.head < a.H ? a.q_norm : a.k_norm;
    share.works =
        in_block < heads_of_block && share.row < a.rows && !(share.is_value && a.bias == nullptr && a.slot == nullptr);
    return share;
  }

  UCAS_ON_DEVICE PairedFours read(const Share& share) const {
    const int d = static_cast<int>(a.d), half = d / 2, at = share.head * d + share.column;
    PairedFours x = load_paired(a.qkv + share.row * (a.H + 2 * a.K) * d + at, half);
    if (a.bias != nullptr) add_to(x, load_paired(a.bias + at, half));
    if (share.is_value) return x;
    if (a.unnormed != nullptr) store_paired(a.unnormed + share.row * (a.H + a.K) * d + at, half, x);
    if (share.norm == nullptr) return x;
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) {  // what the backward will read
      x.low.v[j] = round_trip(x.low.v[j]);
      x.high.v[j] = round_trip(x.high.v[j]);
    }
    return x;
  }

  static UCAS_ON_DEVICE float squares_of(const PairedFours& x) {
    float sum = 0;
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) sum += x.low.v[j] * x.low.v[j] + x.high.v[j] * x.high.v[j];
    return sum;
  }

  UCAS_ON_DEVICE void normalize(PairedFours& x, const Share& share, const float* squares_of_head) const {
    const int d = static_cast<int>(a.d);
    float squares = 0;
    for (int i = 0; i < d / 8; ++i) squares += squares_of_head[i];
    const float scale = 1 / sqrtf(squares / static_cast<float>(d) + a.eps);
    const PairedFours w = load_paired(share.norm + share.column, d / 2);
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) {
      x.low.v[j] = w.low.v[j] * (x.low.v[j] * scale);
      x.high.v[j] = w.high.v[j] * (x.high.v[j] * scale);
    }
  }

  UCAS_ON_DEVICE void write(const Share& share, const PairedFours& x) const {
    const int d = static_cast<int>(a.d), half = d / 2;
    if (!share.is_value || a.bias != nullptr)
      store_paired(a.qkv + share.row * (a.H + 2 * a.K) * d + share.head * d + share.column, half, x);
    if (a.slot == nullptr || share.head < a.H) return;
    constexpr int kTokens = kBlockTokens;
    const int position = a.position[share.row], token = position % kTokens;
    const int block = a.cache.table[a.slot[share.row] * a.cache.blocks_of_slot + position / kTokens];
    const int head = share.head - static_cast<int>(a.H);  // of k, then of v
    Bf16* to = a.cache.layer + block * a.cache.block_stride + static_cast<int64_t>(head) * kTokens * d;
    if (share.is_value) {
      store_paired(to + token * d + share.column, half, x);
    } else {
      store4(to + place_of_key(share.column, token), x.low);
      store4(to + place_of_key(share.column + half, token), x.high);
    }
  }
  static UCAS_ON_DEVICE int place_of_key(int column, int token) {
    constexpr int kTokens = kBlockTokens;
    return column / 8 * (kTokens * 8) + token * 8 + column % 8;
  }
};

// A block takes a row, as many heads at once as its lanes have shares for.
struct RopeAndStoreKvBackwardRows {
  static constexpr int kThreads = 128;
  static constexpr int kResident = 8;
  static constexpr const char* kName = "apply_rope_and_store_kv_backward";
  RopeAndStoreKvBackward a;

  Grid grid() const { return {a.rows}; }
  int shared_bytes() const {
    const size_t of_lane = sizeof(NormSums) + (a.dw != nullptr ? 2 * sizeof(PairedFours) : 0);
    return kThreads * static_cast<int>(of_lane);
  }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const int heads = static_cast<int>(a.H + 2 * a.K), heads_at_once = kThreads / static_cast<int>(a.d / 8);
    typename ThreadBlock::template Local<PairedFours> d_out, x, dw_q, dw_k;
    NormSums* sums = thread_block.template shared<NormSums>();
    thread_block.each([&](int lane) { dw_q[lane] = dw_k[lane] = {zero4(), zero4()}; });
    for (int first = 0; first < heads; first += heads_at_once) {
      thread_block.each([&](int lane) {
        const Share share = share_of(first, lane);
        if (!share.works) return;
        d_out[lane] = read(thread_block.x, share);
        if (share.norm == nullptr) return;
        x[lane] = load_paired(a.unnormed + (thread_block.x * (a.H + a.K) + share.head) * a.d + share.column, a.d / 2);
        sums[lane] = sums_of(share, x[lane], d_out[lane]);
      });
      thread_block.each([&](int lane) {
        const Share share = share_of(first, lane);
        if (!share.works) return;
        if (share.norm != nullptr) {
          const PairedFours dw = differentiate(share, sums + (lane - share.column / 4), x[lane], d_out[lane]);
          share.head < a.H ? add_to(dw_q[lane], dw) : add_to(dw_k[lane], dw);
        }
        store_paired(a.d_qkv + (thread_block.x * heads + share.head) * a.d + share.column, a.d / 2, d_out[lane]);
      });
    }
    if (a.dw == nullptr) return;
    PairedFours* dw_of_lane = thread_block.template shared<PairedFours>(kThreads * sizeof(NormSums));
    thread_block.each([&](int lane) {
      dw_of_lane[lane] = dw_q[lane];
      dw_of_lane[kThreads + lane] = dw_k[lane];
    });
    thread_block.each([&](int lane) { add_up(dw_of_lane, lane, a.dw + thread_block.x * 2 * a.d); });
  }

 private:
  struct Share {
    bool works;  // false: a lane too many
    int head;    // among those of q, k and v
    int column;  // of the first half
    const float* norm;
  };
  UCAS_ON_DEVICE Share share_of(int first, int lane) const {
    const int lanes = static_cast<int>(a.d / 8), in_block = lane / lanes;
    Share share;
    share.head = first + in_block;
    share.column = 4 * (lane - in_block * lanes);
    share.norm = share.head < a.H ? a.q_norm : share.head < a.H + a.K ? a.k_norm : nullptr;
    share.works = in_block < kThreads / lanes && share.head < a.H + 2 * a.K;
    return share;
  }

  // The gradient of the head before its rotation.
  UCAS_ON_DEVICE PairedFours read(int64_t row, const Share& share) const {
    const int H = static_cast<int>(a.H), K = static_cast<int>(a.K), half = static_cast<int>(a.d / 2);
    if (share.head >= H + K) return load_paired(a.d_v + (row * K + share.head - H - K) * a.d + share.column, half);
    PairedFours d = share.head < H ? load_paired(a.d_q + (row * H + share.head) * a.d + share.column, half)
                                   : load_paired(a.d_k + (row * K + share.head - H) * a.d + share.column, half);
    rotate(d, a.cosines, a.sines, static_cast<int64_t>(a.position[row]) * half + share.column, -1);
    return d;
  }

  UCAS_ON_DEVICE NormSums sums_of(const Share& share, const PairedFours& x, const PairedFours& d) const {
    const PairedFours w = load_paired(share.norm + share.column, static_cast<int>(a.d / 2));
    NormSums sums = {};
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) {
      sums.squares += x.low.v[j] * x.low.v[j] + x.high.v[j] * x.high.v[j];
      sums.dot += w.low.v[j] * d.low.v[j] * x.low.v[j] + w.high.v[j] * d.high.v[j] * x.high.v[j];
    }
    return sums;
  }

  // d: of the norm's result, then of what was normed. Gives what the head adds to dw.
  UCAS_ON_DEVICE PairedFours differentiate(const Share& share, const NormSums* sums_of_head, const PairedFours& x,
                                           PairedFours& d) const {
    const int lanes = static_cast<int>(a.d / 8);
    const auto width = static_cast<float>(a.d);
    NormSums sums = {};
    for (int i = 0; i < lanes; ++i) {
      sums.squares += sums_of_head[i].squares;
      sums.dot += sums_of_head[i].dot;
    }
    const float scale = 1 / sqrtf(sums.squares / width + a.eps), mean = sums.dot * scale * scale / width;
    const PairedFours w = load_paired(share.norm + share.column, lanes * 4);
    PairedFours dw;
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) {
      dw.low.v[j] = d.low.v[j] * (x.low.v[j] * scale);
      dw.high.v[j] = d.high.v[j] * (x.high.v[j] * scale);
      d.low.v[j] = scale * (w.low.v[j] * d.low.v[j] - x.low.v[j] * mean);
      d.high.v[j] = scale * (w.high.v[j] * d.high.v[j] - x.high.v[j] * mean);
    }
    return dw;
  }

  // Lanes with the same columns, one after another.
  UCAS_ON_DEVICE void add_up(const PairedFours* dw_of_lane, int lane, float* dw) const {
    const int d = static_cast<int>(a.d), lanes = d / 8;
    for (int i = lane; i < 2 * lanes; i += kThreads) {
      const int of_k = i / lanes, share = i % lanes;
      PairedFours sum = {zero4(), zero4()};
      for (int head = 0; head < kThreads / lanes; ++head)
        add_to(sum, dw_of_lane[of_k * kThreads + head * lanes + share]);
      store_paired(dw + of_k * d + share * 4, d / 2, sum);
    }
  }
};

// --- SwiGLU ---------------------------------------------------------------------------------------------------------

// Eights of all rows follow each other, one for each lane: 2^31 of them are more than a device holds.
struct Eights {
  int64_t rows, width;
  UCAS_ON_DEVICE bool has(int64_t at) const { return at < rows * (width / 8); }
  UCAS_ON_DEVICE int64_t row(int64_t at) const { return static_cast<uint32_t>(at) / static_cast<uint32_t>(width / 8); }
};
inline int64_t blocks_of_eights(int64_t rows, int64_t width, int64_t threads) {
  return (rows * (width / 8) + threads - 1) / threads;
}

struct SwigluRows {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 8;
  static constexpr const char* kName = "swiglu";
  Swiglu a;

  Grid grid() const { return {blocks_of_eights(a.rows, a.width, kThreads)}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const Eights eights{a.rows, a.width};
    thread_block.each([&](int lane) {
      const int64_t at = thread_block.x * kThreads + lane;
      if (!eights.has(at)) return;
      const int64_t from = at * 8 + eights.row(at) * a.width;
      const Bf16x8 gate = load8(a.gate_up + from), up = load8(a.gate_up + from + a.width);
      Bf16x8 out;
      UCAS_UNROLL
      for (int j = 0; j < 8; ++j) {
        const float g = widen(gate.v[j]);
        out.v[j] = narrow(g * sigmoid(g) * widen(up.v[j]));
      }
      store8(a.out + at * 8, out);
    });
  }
};

// d gate = d up s (1 + g (1 - s)),  d up = d g s,  s = sigmoid(g)
struct SwigluBackwardRows {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 8;
  static constexpr const char* kName = "swiglu_backward";
  SwigluBackward a;

  Grid grid() const { return {blocks_of_eights(a.rows, a.width, kThreads)}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const Eights eights{a.rows, a.width};
    thread_block.each([&](int lane) {
      const int64_t at = thread_block.x * kThreads + lane;
      if (!eights.has(at)) return;
      const int64_t from = at * 8 + eights.row(at) * a.width;
      const Bf16x8 gate = load8(a.gate_up + from), up = load8(a.gate_up + from + a.width),
                   d_out = load8(a.d_out + at * 8);
      Bf16x8 d_gate, d_up, act;
      UCAS_UNROLL
      for (int j = 0; j < 8; ++j) {
        const float g = widen(gate.v[j]), u = widen(up.v[j]), d = widen(d_out.v[j]), s = sigmoid(g);
        d_gate.v[j] = narrow(d * u * s * (1 + g * (1 - s)));
        d_up.v[j] = narrow(d * g * s);
        act.v[j] = narrow(g * s * u);
      }
      if (a.act != nullptr) store8(a.act + at * 8, act);
      store8(a.d_gate_up + from, d_gate);
      store8(a.d_gate_up + from + a.width, d_up);
    });
  }
};

// --- sums of parts ---------------------------------------------------------------------------------------------------

// A block has a few columns: four lanes a part, many parts at once.
struct AddPartsColumns {
  static constexpr int kThreads = 512;
  static constexpr int kResident = 2;
  static constexpr const char* kName = "add_parts";
  AddParts a;

  Grid grid() const { return {(a.width + columns() - 1) / columns()}; }
  int shared_bytes() const { return kThreads * static_cast<int>(sizeof(Sums<8>)); }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    a.part != nullptr ? add<4>(thread_block, a.part) : add<8>(thread_block, a.part_narrow);
  }

 private:
  static constexpr int kAcross = 4, kGroups = kThreads / kAcross, kLeft = 16;
  static constexpr int kTogether = 8;  // parts that a lane asks for before it needs the first
  template <int kCount>
  struct Sums {
    float v[kCount];
  };
  int64_t columns() const { return kAcross * (a.part != nullptr ? 4 : 8); }

  template <int kCount, class ThreadBlock, class Number>
  UCAS_ON_DEVICE void add(ThreadBlock& thread_block, const Number* part) const {
    using Sum = Sums<kCount>;
    Sum* sums = thread_block.template shared<Sum>();  // of lanes, by groups of them
    const auto column_of = [&](int lane) { return thread_block.x * (kAcross * kCount) + lane % kAcross * kCount; };
    thread_block.each([&](int lane) {
      if (column_of(lane) < a.width) sums[lane] = of_lane<Sum>(part + column_of(lane), lane / kAcross);
    });
    thread_block.each([&](int lane) {  // the first kLeft groups add up those that are kLeft apart
      if (lane >= kLeft * kAcross || column_of(lane) >= a.width) return;
      Sum sum = sums[lane];
      for (int group = kLeft; group < kGroups; group += kLeft) add_to(sum, sums[group * kAcross + lane]);
      sums[lane] = sum;
    });
    thread_block.each([&](int lane) {
      if (lane >= kAcross * kCount) return;
      const int64_t column = thread_block.x * (kAcross * kCount) + lane;
      if (column >= a.width) return;
      float sum = 0;
      for (int group = 0; group < kLeft; ++group) sum += sums[group * kAcross + lane / kCount].v[lane % kCount];
      a.sum[column] = a.before != nullptr ? a.before[column] + sum : sum;
    });
  }

  template <class Sum, class Number>
  UCAS_ON_DEVICE Sum of_lane(const Number* part, int64_t first) const {
    Sum sum = {};
    int64_t i = first;
    for (; i + (kTogether - 1) * kGroups < a.parts; i += kTogether * kGroups) {
      Sum read[kTogether];
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) load(part + (i + k * kGroups) * a.stride, read[k]);
      UCAS_UNROLL
      for (int k = 0; k < kTogether; ++k) add_to(sum, read[k]);
    }
    for (; i < a.parts; i += kGroups) {
      Sum read;
      load(part + i * a.stride, read);
      add_to(sum, read);
    }
    return sum;
  }
  static UCAS_ON_DEVICE void load(const float* from, Sums<4>& to) {
    const Floatx4 x = load4(from);
    UCAS_UNROLL
    for (int j = 0; j < 4; ++j) to.v[j] = x.v[j];
  }
  static UCAS_ON_DEVICE void load(const Bf16* from, Sums<8>& to) {
    const Bf16x8 x = load8(from);
    UCAS_UNROLL
    for (int j = 0; j < 8; ++j) to.v[j] = widen(x.v[j]);
  }
  template <int kCount>
  static UCAS_ON_DEVICE void add_to(Sums<kCount>& sum, const Sums<kCount>& x) {
    UCAS_UNROLL
    for (int j = 0; j < kCount; ++j) sum.v[j] += x.v[j];
  }
};

}  // namespace ucas::gpu

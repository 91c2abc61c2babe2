// Kernels of the LM head's statistics, their gradient and token sampling; arguments, equations: kernels/gpu/kernels.h.
#pragma once

#include "base/rng.h"
#include "kernels/gpu/kernels.h"
#include "kernels/lm_head.h"

namespace ucas::gpu {

// Columns of a tile are a lane's in turn: consecutive lanes read consecutive columns, whatever the row begins at.
constexpr int kHeadLanes = 256, kColumnsOfLane = static_cast<int>(kHeadTile) / kHeadLanes;
struct LaneColumns {
  float v[kColumnsOfLane];
};

// The sums of kernels::RowStats, of any columns.
struct HeadSums {
  double sum, weighted, total;
};
UCAS_ON_DEVICE HeadSums operator+(const HeadSums& a, const HeadSums& b) {
  return {a.sum + b.sum, a.weighted + b.weighted, a.total + b.total};
}

// A tile's sums as seen from the largest z of its row. In double the shift stays finite, so that 0 times it is 0.
UCAS_ON_DEVICE double share_of(const TileStats& tile, float largest) {
  return exp(static_cast<double>(tile.max) - static_cast<double>(largest));
}
UCAS_ON_DEVICE HeadSums seen_from(const TileStats& tile, float largest) {
  const double shift = static_cast<double>(tile.max) - static_cast<double>(largest), scale = share_of(tile, largest);
  return {tile.sum * scale, scale * (tile.weighted + tile.sum * shift), tile.total};
}
UCAS_ON_DEVICE kernels::RowStats as_row(float largest, const HeadSums& sums) {
  return {largest, sums.sum, sums.weighted, sums.total};
}

// A warp has a tile of a row to itself: no warp waits for other rows. All of it is read before any of it is used, and
// kept in registers.
struct HeadTiles {
  static constexpr int kThreads = 128;
  static constexpr int kResident = 4;
  static constexpr const char* kName = "head_stats_of_tiles";
  HeadStatsOfTiles a;

  Grid grid() const { return {(a.rows + kRows - 1) / kRows, head_tiles(a.columns)}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const int64_t first = thread_block.y * kHeadTile;
    const auto n = static_cast<int>(a.columns - first < kHeadTile ? a.columns - first : kHeadTile);
    const bool by_fours = reinterpret_cast<uintptr_t>(a.logits) % sizeof(Floatx4) == 0 && a.stride % 4 == 0;
    n == kHeadTile&& by_fours ? tiles<true>(thread_block, first, n) : tiles<false>(thread_block, first, n);
  }

 private:
  static constexpr int kRows = kThreads / 32;
  // A lane has every 32nd four of the columns, read whole where it can be: which lane has what does not depend on that.
  static constexpr int kFours = static_cast<int>(kHeadTile) / (32 * 4);
  struct Numbers {
    Floatx4 z[kFours];
  };
  static UCAS_ON_DEVICE int column_of(int lane, int k) { return (k * 32 + lane % 32) * 4; }

  template <bool kWhole, class ThreadBlock>
  UCAS_ON_DEVICE void tiles(ThreadBlock& thread_block, int64_t first, int n) const {
    const auto row_of = [&](int lane) { return thread_block.x * kRows + lane / 32; };
    const auto logits_of = [&](int lane) { return a.logits + row_of(lane) * a.stride + first; };
    typename ThreadBlock::template Local<Numbers> kept;
    typename ThreadBlock::template Local<float> largest;
    typename ThreadBlock::template Local<HeadSums> sums;
    thread_block.reduce_of_warp(
        [&](int lane) { return row_of(lane) < a.rows ? read<kWhole>(logits_of(lane), n, lane, kept[lane]) : 0; },
        [](float x, float y) { return fmaxf(x, y); }, largest);
    thread_block.reduce_of_warp(
        [&](int lane) {
          return row_of(lane) < a.rows ? sums_of<kWhole>(kept[lane], n, lane, largest[lane]) : HeadSums{};
        },
        [](const HeadSums& x, const HeadSums& y) { return x + y; }, sums);
    thread_block.each_of_warp([&](int lane) {
      const int64_t row = row_of(lane);
      if (lane % 32 != 0 || row >= a.rows) return;
      const HeadSums& s = sums[lane];
      a.of_tile[row * a.tiles + a.first_tile + thread_block.y] = {largest[lane], 0, s.sum, s.weighted, s.total};
      if (a.target == nullptr) return;
      const int64_t target = a.target[row] - (a.first_tile + thread_block.y) * kHeadTile;
      if (target >= 0 && target < n) a.chosen[row] = logits_of(lane)[target];
    });
  }

  // The largest z; fmaxf drops a NaN, but the sums are then NaN.
  template <bool kWhole>
  UCAS_ON_DEVICE float read(const float* logits, int n, int lane, Numbers& kept) const {
    UCAS_UNROLL
    for (int k = 0; k < kFours; ++k) {
      const int column = column_of(lane, k);
      if constexpr (kWhole) {
        kept.z[k] = load4(logits + column);
      } else {
        UCAS_UNROLL
        for (int j = 0; j < 4; ++j) kept.z[k].v[j] = column + j < n ? logits[column + j] : 0;
      }
    }
    float most = -3.4e38f;
    UCAS_UNROLL
    for (int k = 0; k < kFours; ++k) {
      UCAS_UNROLL
      for (int j = 0; j < 4; ++j) {
        kept.z[k].v[j] *= a.inverse_temperature;
        if (kWhole || column_of(lane, k) + j < n) most = fmaxf(most, kept.z[k].v[j]);
      }
    }
    return most;
  }

  // Eight by eight in f32.
  template <bool kWhole>
  static UCAS_ON_DEVICE HeadSums sums_of(const Numbers& kept, int n, int lane, float largest) {
    HeadSums sums{};
    UCAS_UNROLL
    for (int first = 0; first < kFours; first += 2) {
      float sum = 0, weighted = 0, total = 0;
      UCAS_UNROLL
      for (int k = first; k < first + 2; ++k) {
        UCAS_UNROLL
        for (int j = 0; j < 4; ++j) {
          if (!kWhole && column_of(lane, k) + j >= n) continue;
          const float z = kept.z[k].v[j], shift = z - largest, e = expf(shift);
          sum += e;
          weighted += e * fmaxf(shift, -100.0f);  // not 0 * -inf
          total += z;
        }
      }
      sums = sums + HeadSums{sum, weighted, total};
    }
    return sums;
  }
};

// A lane has a row.
struct HeadRows {
  static constexpr int kThreads = 32;
  static constexpr const char* kName = "head_stats_of_rows";
  HeadStatsOfRows a;

  Grid grid() const { return {(a.rows + kThreads - 1) / kThreads}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    thread_block.each([&](int lane) {
      const int64_t row = thread_block.x * kThreads + lane;
      if (row >= a.rows) return;
      const TileStats* of_tile = a.of_tile + row * a.tiles;
      float largest = of_tile[0].max;
      for (int64_t t = 1; t < a.tiles; ++t) largest = fmaxf(largest, of_tile[t].max);
      HeadSums sums{};
      for (int64_t t = 0; t < a.tiles; ++t) sums = sums + seen_from(of_tile[t], largest);
      const kernels::RowStats stats = as_row(largest, sums);
      const kernels::TokenStats token = kernels::token_stats(stats, a.chosen[row], a.inverse_temperature, a.vocab);
      a.logprob[row] = token.logprob;
      a.entropy[row] = token.entropy;
      a.confidence[row] = token.confidence;
      a.margin[row] = token.margin;
      a.lse[row] = static_cast<float>(kernels::lse_of(stats));
    });
  }
};

struct HeadGradientRows {
  static constexpr int kThreads = kHeadLanes;
  static constexpr const char* kName = "head_gradient";
  HeadGradient a;

  Grid grid() const { return {a.rows}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const int64_t row = thread_block.x;
    const kernels::RowGradient of{a.lse[row], a.entropy[row],        a.g[row],       a.e[row],
                                  a.u[row],   a.inverse_temperature, a.inverse_vocab};
    const bool counts = of.g != 0 || of.e != 0 || of.u != 0;
    const int64_t target = a.target[row] - a.first_column;
    float* logits = a.logits + row * a.stride;
    typename ThreadBlock::template Local<LaneColumns>
        kept;  // a tile is read before it, or one before it, is written over
    UCAS_ROLLED
    for (int64_t first = 0; first < a.columns; first += kHeadTile) {
      thread_block.each([&](int lane) {
        UCAS_UNROLL
        for (int j = 0; j < kColumnsOfLane; ++j) {
          const int64_t column = first + lane + j * kThreads;
          kept[lane].v[j] = counts && column < a.columns ? logits[column] : 0;
        }
      });
      thread_block.each([&](int lane) {
        UCAS_UNROLL
        for (int j = 0; j < kColumnsOfLane; ++j) {
          const int64_t column = first + lane + j * kThreads;
          if (column >= a.columns) continue;
          float slope = counts ? without_target(kept[lane].v[j], of) : 0;
          if (column == target) slope += of.g * of.inverse_temperature;
          const Bf16 rounded = narrow(slope);
          std::memcpy(reinterpret_cast<unsigned char*>(logits) + column * sizeof rounded, &rounded, sizeof rounded);
        }
      });
    }
  }

 private:
  static UCAS_ON_DEVICE float without_target(float logit, const kernels::RowGradient& of) {
    const float log_p = logit * of.inverse_temperature - of.lse, p = expf(log_p);
    const float spread = -of.e * ((log_p < -87.3f ? 0 : log_p) + of.entropy);  // p ln p -> 0
    return (p * (of.u - of.g + spread) - of.u * of.inverse_vocab) * of.inverse_temperature;
  }
};

// What both ways to sample share.
struct SampleRow {
  const SampleToken& a;
  static constexpr int kThreads = kHeadLanes;
  static constexpr int kRun = 16, kRuns = kThreads / kRun;  // lanes

  // The masses of one tile: of columns, of lanes with their columns, of runs of lanes.
  struct Masses {
    double *of_run, *of_lane;  // [kRuns], [kThreads]
    float* of_column;          // [kHeadTile]
  };
  static constexpr int kMassBytes = (kThreads + kRuns) * sizeof(double) + kHeadTile * sizeof(float);
  static UCAS_ON_DEVICE Masses masses_at(void* begin) {
    auto* of_run = static_cast<double*>(begin);
    return {of_run, of_run + kRuns, reinterpret_cast<float*>(of_run + kRuns + kThreads)};
  }

  static UCAS_ON_DEVICE bool is_finite(double x) { return x - x == 0; }
  template <class T>
  static UCAS_ON_DEVICE double sum_of(const T* x, int n) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    return sum;
  }

  // The first of n masses whose running sum passes `target`, the last one with any where rounding lets none pass;
  // target becomes what is left for that one.
  template <class Mass>
  static UCAS_ON_DEVICE int64_t pick(int64_t n, double& target, Mass mass) {
    int64_t picked = 0;
    double running = 0, before = 0;
    for (int64_t i = 0; i < n && !(running > target); ++i) {
      if (mass(i) > 0) {
        picked = i;
        before = running;
      }
      running += mass(i);
    }
    target -= before;
    return picked;
  }

  UCAS_ON_DEVICE double uniform_of(int64_t row) const {
    const SamplerState& state = a.state[row];
    return uniform(SampleKey{a.run->seed, a.run->step, state.problem, state.response, state.sample});
  }
  UCAS_ON_DEVICE int width_of(int64_t tile) const {
    const int64_t left = a.vocab - tile * kHeadTile;
    return static_cast<int>(left < kHeadTile ? left : kHeadTile);
  }

  template <class ThreadBlock>
  UCAS_ON_DEVICE float largest_of(ThreadBlock& thread_block, const TileStats* of_tile) const {
    return thread_block.reduce(
        [&](int lane) {
          float most = -3.4e38f;
          for (int64_t t = lane; t < a.tiles; t += kThreads) most = fmaxf(most, of_tile[t].max);
          return most;
        },
        [](float x, float y) { return fmaxf(x, y); });
  }

  // Fills masses.of_column by `mass(column of the tile)`, then what is summed from it.
  template <class ThreadBlock, class Mass>
  static UCAS_ON_DEVICE void fill(ThreadBlock& thread_block, const Masses& masses, Mass mass) {
    thread_block.each([&](int lane) {
      for (int column = lane; column < kHeadTile; column += kThreads) masses.of_column[column] = mass(column);
    });
    thread_block.each(
        [&](int lane) { masses.of_lane[lane] = sum_of(masses.of_column + lane * kColumnsOfLane, kColumnsOfLane); });
    thread_block.each([&](int lane) {
      if (lane < kRuns) masses.of_run[lane] = sum_of(masses.of_lane + lane * kRun, kRun);
    });
  }
  static UCAS_ON_DEVICE int find_column(const Masses& masses, double target) {
    const int64_t run = pick(kRuns, target, [&](int64_t i) { return masses.of_run[i]; });
    const int64_t lane = run * kRun + pick(kRun, target, [&](int64_t i) { return masses.of_lane[run * kRun + i]; });
    const float* mass = masses.of_column + lane * kColumnsOfLane;
    return static_cast<int>(lane * kColumnsOfLane +
                            pick(kColumnsOfLane, target, [&](int64_t i) { return static_cast<double>(mass[i]); }));
  }

  // The first column of a tile whose z is `value`.
  template <class ThreadBlock>
  static UCAS_ON_DEVICE int first_equal(ThreadBlock& thread_block, const float* logits, int n,
                                        float inverse_temperature, float value) {
    return thread_block.reduce(
        [&](int lane) {
          for (int column = lane; column < n; column += kThreads) {
            if (logits[column] * inverse_temperature == value) return column;
          }
          return static_cast<int>(kHeadTile);
        },
        [](int x, int y) { return x < y ? x : y; });
  }

  // kept: the share of the row's mass that was sampled from.
  UCAS_ON_DEVICE DeviceSampledToken sampled(int64_t column, float logit, float inverse_temperature,
                                            const kernels::RowStats& stats, double kept = 1) const {
    const kernels::TokenStats token = kernels::token_stats(stats, logit, inverse_temperature, a.vocab);
    const float logprob = kept < 1 ? static_cast<float>(token.logprob - log(kept)) : token.logprob;
    return {static_cast<int32_t>(column), logprob, token.logprob, token.entropy, token.confidence, logit};
  }

  UCAS_ON_DEVICE void finish(int64_t row, const DeviceSampledToken& sampled) const {
    a.sampled[row] = sampled;
    if (a.token == nullptr) return;
    if (sampled.token >= 0) a.token[row] = sampled.token;
    ++a.state[row].sample;
    ++a.position[row];
  }
};

// One row. The search goes from tiles to runs of lanes, to lanes, to columns, each time by masses of the level below.
struct SampleTokenRows {
  static constexpr int kThreads = kHeadLanes;
  static constexpr const char* kName = "sample";
  SampleToken a;

  Grid grid() const { return {a.rows}; }
  int shared_bytes() const {
    return static_cast<int>(a.tiles * sizeof(HeadSums) + SampleRow::kMassBytes + sizeof(Found));
  }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const int64_t row = thread_block.x;
    const SampleRow of{a};
    const bool greedy = a.state[row].greedy != 0 && a.of_tile_greedy != nullptr;
    const float inverse_temperature = greedy ? 1.0f : a.inverse_temperature;
    const TileStats* of_tile = (greedy ? a.of_tile_greedy : a.of_tile) + row * a.tiles;
    const Scratch scratch = scratch_of(thread_block);

    const float largest = of.largest_of(thread_block, of_tile);
    thread_block.each([&](int lane) {
      for (int64_t t = lane; t < a.tiles; t += kThreads) scratch.of_tile[t] = seen_from(of_tile[t], largest);
    });
    thread_block.each([&](int lane) {
      if (lane == 0) *scratch.found = find_tile(row, greedy, largest, of_tile, scratch);
    });
    if (!scratch.found->finite) {
      thread_block.each([&](int lane) {
        if (lane == 0) of.finish(row, {-1, 0, 0, 0, 0, 0});
      });
      return;
    }

    const int64_t first = scratch.found->tile * kHeadTile;
    const int n = of.width_of(scratch.found->tile);
    const float* logits = a.logits + row * a.stride + first;
    const float most_of_tile = of_tile[scratch.found->tile].max;
    const auto finish = [&](int column) {
      of.finish(row, of.sampled(first + column, logits[column], inverse_temperature, scratch.found->stats));
    };
    if (greedy) {
      const int column = of.first_equal(thread_block, logits, n, 1.0f, most_of_tile);
      thread_block.each([&](int lane) {
        if (lane == 0) finish(column);
      });
      return;
    }
    of.fill(thread_block, scratch.masses,
            [&](int column) { return column < n ? expf(logits[column] * inverse_temperature - most_of_tile) : 0; });
    thread_block.each([&](int lane) {
      if (lane == 0) finish(SampleRow::find_column(scratch.masses, scratch.found->target));
    });
  }

 private:
  struct Found {
    kernels::RowStats stats;
    double target;  // of the tile's masses, seen from its own largest z
    int64_t tile;
    bool finite;
  };
  struct Scratch {
    HeadSums* of_tile;  // [tiles]
    Found* found;
    SampleRow::Masses masses;
  };
  template <class ThreadBlock>
  UCAS_ON_DEVICE Scratch scratch_of(ThreadBlock& thread_block) const {
    Scratch scratch;
    scratch.of_tile = thread_block.template shared<HeadSums>();
    scratch.found = reinterpret_cast<Found*>(scratch.of_tile + a.tiles);
    scratch.masses = SampleRow::masses_at(scratch.found + 1);
    return scratch;
  }

  UCAS_ON_DEVICE Found find_tile(int64_t row, bool greedy, float largest, const TileStats* of_tile,
                                 const Scratch& scratch) const {
    HeadSums sums{};
    for (int64_t t = 0; t < a.tiles; ++t) sums = sums + scratch.of_tile[t];
    Found found{as_row(largest, sums), 0, 0, false};
    found.finite = SampleRow::is_finite(kernels::lse_of(found.stats)) && SampleRow::is_finite(sums.total);
    if (!found.finite) return found;
    if (greedy) {
      while (of_tile[found.tile].max != largest) ++found.tile;
      return found;
    }
    found.target = SampleRow{a}.uniform_of(row) * sums.sum;
    found.tile = SampleRow::pick(a.tiles, found.target, [&](int64_t t) { return scratch.of_tile[t].sum; });
    found.target /= share_of(of_tile[found.tile], largest);
    return found;
  }
};

}  // namespace ucas::gpu

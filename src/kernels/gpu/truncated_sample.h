// Sampling with top_k, top_p and min_p, one row a thread block; arguments: kernels/gpu/kernels.h, meaning:
// rollout/sampling/sampler.h. Nothing is sorted and nothing is atomic. Probabilities are positive floats, so their bits
// are ordered as they are. A cut (the k-th largest, the one with which a mass is reached) is found by the bits from the
// top, four a pass: every lane counts its columns into 16 bins of its own, counts and masses, and the bins are added up
// in a fixed order. The sampler samples from its candidates in this order: those of higher buckets (the upper 11 bits)
// by id, then those of the bucket that the cut falls into from the most probable on, equal ones by id. So does this: by
// id it is the search of an untruncated sample (SampleRow), in order of probability it is one more cut, at the sampled
// mass. A pass reads only tiles whose largest logit can be at or above the bins: of a peaked row few.
#pragma once

#include "kernels/gpu/kernels.h"
#include "kernels/gpu/lm_head.h"

namespace ucas::gpu {

struct TruncatedSampleRows {
  static constexpr int kThreads = kHeadLanes;
  static constexpr int kResident = 2;
  static constexpr const char* kName = "sample_truncated";
  SampleToken a;

  Grid grid() const { return {a.rows}; }
  int shared_bytes() const {
    return static_cast<int>(a.tiles * (sizeof(HeadSums) + sizeof(double)) + sizeof(Found)) + kBinBytes;
  }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const int64_t row = thread_block.x;
    const SampleRow of{a};
    const bool greedy = a.state[row].greedy != 0 && a.of_tile_greedy != nullptr;
    const Row r = row_of(thread_block, row, greedy);
    if (!r.found->finite) {
      thread_block.each([&](int lane) {
        if (lane == 0) of.finish(row, {-1, 0, 0, 0, 0, 0});
      });
      return;
    }
    if (!greedy) {
      cut(thread_block, r);
      sample(thread_block, r, of.uniform_of(row));
    }
    if (greedy || r.found->column < 0) take_first_of_largest(thread_block, r);
    thread_block.each([&](int lane) {
      if (lane != 0) return;
      const Found& f = *r.found;
      const double share = greedy ? 1 : f.kept / f.total;
      of.finish(row, of.sampled(f.column, r.logits[f.column], r.inverse_temperature, f.stats, share));
    });
  }

 private:
  static constexpr int kDigit = 4, kBins = 1 << kDigit;  // bits of a pass
  static constexpr int kTop = 32, kBucket = 20;          // keys have 32 bits; a bucket ends above so many
  static constexpr int kBinBytes = kBins * kThreads * static_cast<int>(sizeof(double) + sizeof(uint16_t)) +
                                   2 * kThreads * static_cast<int>(sizeof(double));
  static constexpr uint32_t kNone = 0xffffffffu;  // above every key

  // Where a search by bits has come to: keys whose upper bits are `prefix`, and what lies above them.
  struct Cut {
    uint32_t prefix;
    double mass_above, mass;
    int64_t count_above, count;
    bool crossed;
  };
  struct Found {
    kernels::RowStats stats;
    bool finite;
    float lse;
    double total;  // mass of the row
    Cut at, bucket;
    // Kept: keys above `least` and the first `ties` of those equal to it; of them those from `by_id` on are sampled by
    // id, the others by probability.
    uint32_t least, by_id;
    int64_t ties;
    double kept, kept_by_id;
    int64_t tile, column;
  };
  struct Row {
    const float* logits;
    const TileStats* of_tile;
    float inverse_temperature;
    Found* found;
    HeadSums* sums;      // [tiles]
    double* tile_mass;   // [tiles]
    double *bin, *part;  // [kBins, kThreads], [kThreads]; shared with the masses of a search by id
    int64_t* part_count;
    uint16_t* bin_count;  // [kBins, kThreads]: a lane has a 256th of the vocabulary
  };
  enum class Until { count, mass, sampled };

  template <class ThreadBlock>
  UCAS_ON_DEVICE Row row_of(ThreadBlock& thread_block, int64_t row, bool greedy) const {
    Row r;
    r.logits = a.logits + row * a.stride;
    r.of_tile = (greedy ? a.of_tile_greedy : a.of_tile) + row * a.tiles;
    r.inverse_temperature = greedy ? 1.0f : a.inverse_temperature;
    r.sums = thread_block.template shared<HeadSums>();
    r.tile_mass = reinterpret_cast<double*>(r.sums + a.tiles);
    r.found = reinterpret_cast<Found*>(r.tile_mass + a.tiles);
    r.bin = reinterpret_cast<double*>(r.found + 1);
    r.part = r.bin + kBins * kThreads;
    r.part_count = reinterpret_cast<int64_t*>(r.part + kThreads);
    r.bin_count = reinterpret_cast<uint16_t*>(r.part_count + kThreads);
    const float largest = SampleRow{a}.largest_of(thread_block, r.of_tile);
    thread_block.each([&](int lane) {
      for (int64_t t = lane; t < a.tiles; t += kThreads) r.sums[t] = seen_from(r.of_tile[t], largest);
    });
    thread_block.each([&](int lane) {
      if (lane != 0) return;
      HeadSums sums{};
      for (int64_t t = 0; t < a.tiles; ++t) sums = sums + r.sums[t];
      Found& f = *r.found;
      f.stats = as_row(largest, sums);
      f.finite = SampleRow::is_finite(kernels::lse_of(f.stats)) && SampleRow::is_finite(sums.total);
      f.lse = static_cast<float>(kernels::lse_of(f.stats));
      f.total = 0;
      f.bucket = {0, 0, 0, 0, 0, false};
      f.column = -1;
    });
    return r;
  }

  // --- probabilities, up to a common factor -------------------------------------------------------------------------

  UCAS_ON_DEVICE float mass_of(const Row& r, float z) const {
    const float log_p = z - r.found->lse;
    return log_p < -87.3f ? 0.0f : expf(log_p) * r.inverse_temperature;
  }
  UCAS_ON_DEVICE float mass_at(const Row& r, int64_t column) const {
    return mass_of(r, product(r.logits[column], r.inverse_temperature));
  }
  // Whether a tile may hold a key from `low` on; expf may be off by some last places either way.
  UCAS_ON_DEVICE bool may_reach(const Row& r, int64_t tile, uint32_t low) const {
    return as_bits(mass_of(r, r.of_tile[tile].max) * 1.00001f) >= low;
  }
  // visit(mass) for a lane's columns of all tiles that may hold a key from `low` on.
  template <class Visit>
  UCAS_ON_DEVICE void each_mass(const Row& r, int lane, uint32_t low, Visit visit) const {
    UCAS_ROLLED
    for (int64_t tile = 0; tile < a.tiles; ++tile) {
      if (!may_reach(r, tile, low)) continue;
      const int n = SampleRow{a}.width_of(tile);
      for (int column = lane; column < n; column += kThreads) visit(mass_at(r, tile * kHeadTile + column));
    }
  }

  // --- cuts

  // Goes down from keys whose bits from `from` on are at.prefix to a single one.
  template <class ThreadBlock>
  UCAS_ON_DEVICE void descend(ThreadBlock& thread_block, const Row& r, int from, Until until, double target) const {
    UCAS_ROLLED
    for (int shift = from - kDigit; shift >= 0; shift -= kDigit) {
      add_bins(thread_block, r, shift);
      thread_block.each([&](int lane) {
        if (lane == 0) choose(r, shift, until, target);
      });
    }
  }

  template <class ThreadBlock>
  UCAS_ON_DEVICE void add_bins(ThreadBlock& thread_block, const Row& r, int shift) const {
    const uint32_t prefix = r.found->at.prefix;
    thread_block.each([&](int lane) {
      for (int bin = 0; bin < kBins; ++bin) r.bin[bin * kThreads + lane] = 0, r.bin_count[bin * kThreads + lane] = 0;
      const bool first = shift + kDigit == kTop;
      each_mass(r, lane, first ? 0 : prefix << (shift + kDigit), [&](float mass) {
        const uint32_t key = as_bits(mass);
        if (!first && key >> (shift + kDigit) != prefix) return;
        const int at = static_cast<int>(key >> shift & (kBins - 1)) * kThreads + lane;
        r.bin[at] += mass;
        ++r.bin_count[at];
      });
    });
    constexpr int kEach = kThreads / kBins;  // lanes that add up a bin
    thread_block.each([&](int lane) {
      double mass = 0;
      int64_t count = 0;
      for (int i = 0; i < kEach; ++i) {  // neighbours begin at other ones: at once they read other banks of the memory
        const int at = lane * kEach + (lane + i) % kEach;
        mass += r.bin[at];
        count += r.bin_count[at];
      }
      r.part[lane] = mass;
      r.part_count[lane] = count;
    });
  }

  // The highest bin with which `target` is reached; where rounding lets none reach it, the lowest.
  static UCAS_ON_DEVICE void choose(const Row& r, int shift, Until until, double target) {
    Cut& cut = r.found->at;
    constexpr int kEach = kThreads / kBins;
    const bool first = shift + kDigit == kTop;
    if (first) r.found->total = 0;
    bool taken = false;
    int digit = 0;
    UCAS_ROLLED
    for (int bin = kBins - 1; bin >= 0; --bin) {
      double mass = 0;
      int64_t count = 0;
      for (int i = 0; i < kEach; ++i) {
        mass += r.part[bin * kEach + i];
        count += r.part_count[bin * kEach + i];
      }
      if (first) r.found->total += mass;
      if (taken) continue;
      const double with = cut.mass_above + mass;
      const bool crosses = until == Until::count  ? static_cast<double>(cut.count_above + count) >= target
                           : until == Until::mass ? !(with < target)
                                                  : with > target;
      cut.crossed = crosses;
      cut.mass = mass;
      cut.count = count;
      digit = bin;
      taken = crosses;
      if (crosses || bin == 0) continue;
      cut.mass_above = with;
      cut.count_above += count;
    }
    cut.prefix = (first ? 0 : cut.prefix << kDigit) | static_cast<uint32_t>(digit);
    if (shift == kBucket) r.found->bucket = cut;
  }

  static UCAS_ON_DEVICE double mass_of_ties(const Found& f) { return static_cast<double>(f.ties) * as_float(f.least); }
  // Of equal masses, how many more are needed from `above` until `wanted` is reached; `passed`: until it is passed.
  static UCAS_ON_DEVICE int64_t ties_until(double above, double wanted, float mass, int64_t most, bool passed) {
    if (most == 0) return 0;
    double n = mass > 0 ? ceil((wanted - above) / mass) : static_cast<double>(most);
    if (!(n > 0)) n = 0;
    const auto reached = [&](double ties) {
      const double with = above + ties * mass;
      return passed ? with > wanted : !(with < wanted);
    };
    while (n > 0 && reached(n - 1)) n -= 1;
    if (!reached(n)) n += 1;
    return n < static_cast<double>(most) ? static_cast<int64_t>(n) : most;
  }

  template <class ThreadBlock>
  UCAS_ON_DEVICE void start(ThreadBlock& thread_block, const Row& r) const {
    thread_block.each([&](int lane) {
      if (lane == 0) r.found->at = {0, 0, 0, 0, 0, false};
    });
  }

  // Decides what is kept.
  template <class ThreadBlock>
  UCAS_ON_DEVICE void cut(ThreadBlock& thread_block, const Row& r) const {
    const bool by_k = a.top_k > 0 && a.top_k < a.vocab, by_p = a.top_p < 1;
    start(thread_block, r);
    if (by_k) {
      descend(thread_block, r, kTop, Until::count, static_cast<double>(a.top_k));
      conclude(thread_block, r, [this](Found& f) { f.ties = a.top_k - f.at.count_above; });
    }
    if (!by_k) add_bins(thread_block, r, kTop - kDigit);  // with which the mass of all is known, too
    thread_block.each([&](int lane) {
      if (lane == 0 && !by_k) choose(r, kTop - kDigit, Until::mass, 0);
    });
    if (by_p) {
      const double wanted = a.top_p * (by_k ? r.found->kept : r.found->total);
      const uint32_t least = by_k ? r.found->least : 0;
      const int64_t ties = by_k ? r.found->ties : 0;  // both before the next barriers: conclude() writes them
      start(thread_block, r);
      thread_block.each([&](int lane) {
        if (lane == 0 && !by_k) choose(r, kTop - kDigit, Until::mass, wanted);
      });
      descend(thread_block, r, by_k ? kTop : kTop - kDigit, Until::mass, wanted);
      conclude(thread_block, r, [&](Found& f) {
        int64_t most = f.at.count;
        if (by_k && f.at.prefix == least && ties < most) most = ties;
        f.ties = ties_until(f.at.mass_above, wanted, as_float(f.at.prefix), most, false);
        if (f.ties == 0 && f.at.count_above == 0 && most > 0) f.ties = 1;
        if (by_k) f.by_id = kNone;  // all from the most probable on
      });
    }
    if (a.min_p > 0) keep_min_p(thread_block, r, by_k || by_p);
  }

  // After a descent: `ties` says how many of the equal ones are kept.
  template <class ThreadBlock, class Ties>
  static UCAS_ON_DEVICE void conclude(ThreadBlock& thread_block, const Row& r, Ties ties) {
    thread_block.each([&](int lane) {
      if (lane != 0) return;
      Found& f = *r.found;
      f.least = f.at.prefix;
      f.by_id = (f.bucket.prefix + 1) << kBucket;
      f.kept_by_id = f.bucket.mass_above;
      ties(f);
      if (f.by_id == kNone) f.kept_by_id = 0;
      f.kept = f.at.mass_above + mass_of_ties(f);
    });
  }

  // Of what is kept, or of all, those with min_p of the largest.
  template <class ThreadBlock>
  UCAS_ON_DEVICE void keep_min_p(ThreadBlock& thread_block, const Row& r, bool cut_already) const {
    const double floor = a.min_p * static_cast<double>(mass_of(r, r.found->stats.max));
    const auto rounded = static_cast<float>(floor);
    const uint32_t low = as_bits(rounded) + (static_cast<double>(rounded) < floor ? 1 : 0);
    if (cut_already && low <= r.found->least) return;  // spares those that it is about
    const uint32_t by_id = !cut_already ? low : r.found->by_id > low ? r.found->by_id : low;
    const double kept = mass_from(thread_block, r, low), kept_by_id = mass_from(thread_block, r, by_id);
    thread_block.each([&](int lane) {
      if (lane != 0) return;
      Found& f = *r.found;
      f.least = low - 1;
      f.ties = 0;
      f.by_id = by_id;
      f.kept = kept;
      f.kept_by_id = kept_by_id;
    });
  }
  template <class ThreadBlock>
  UCAS_ON_DEVICE double mass_from(ThreadBlock& thread_block, const Row& r, uint32_t low) const {
    return thread_block.sum([&](int lane) {
      double sum = 0;
      each_mass(r, lane, low, [&](float mass) { sum += as_bits(mass) >= low ? mass : 0; });
      return sum;
    });
  }

  // --- sample

  template <class ThreadBlock>
  UCAS_ON_DEVICE void sample(ThreadBlock& thread_block, const Row& r, double uniform) const {
    const double target = uniform * r.found->kept;
    if (r.found->kept_by_id > target) {
      const uint32_t low = r.found->by_id;
      find_by_id(thread_block, r, target, low, [low](float mass) { return as_bits(mass) >= low ? mass : 0; });
      return;
    }
    const bool of_all = r.found->by_id == kNone;
    thread_block.each([&](int lane) {
      Found& f = *r.found;
      if (lane == 0) f.at = of_all ? Cut{0, 0, 0, 0, 0, false} : f.bucket;
    });
    descend(thread_block, r, of_all ? kTop : kBucket, Until::sampled, target);
    const Found& f = *r.found;
    const uint32_t key = f.at.prefix;
    const int64_t most = key == f.least ? f.ties : f.at.count;
    const bool kept = f.at.crossed && key >= f.least && most > 0;
    const int64_t tie = ties_until(f.at.mass_above, target, as_float(key), most, true);
    if (!kept) return;  // rounding: the sum of what is kept is not beyond the target
    find_by_id(thread_block, r, static_cast<double>(tie) - 0.5, key,
               [key](float mass) { return as_bits(mass) == key ? 1.0f : 0; });
  }

  // The first column whose running sum of value(mass) passes the target; no mass below `low` has any.
  template <class ThreadBlock, class Value>
  UCAS_ON_DEVICE void find_by_id(ThreadBlock& thread_block, const Row& r, double target, uint32_t low,
                                 Value value) const {
    constexpr int kWarps = kThreads / 32;
    typename ThreadBlock::template Local<double> sum;
    UCAS_ROLLED
    for (int64_t first = 0; first < a.tiles; first += kWarps) {
      thread_block.reduce_of_warp([&](int lane) { return of_tile(r, first + lane / 32, lane % 32, low, value); },
                                  [](double x, double y) { return x + y; }, sum);
      thread_block.each_of_warp([&](int lane) {
        if (lane % 32 == 0 && first + lane / 32 < a.tiles) r.tile_mass[first + lane / 32] = sum[lane];
      });
    }
    thread_block.each([](int) {});
    thread_block.each([&](int lane) {
      if (lane != 0) return;
      double left = target;
      r.found->tile = SampleRow::pick(a.tiles, left, [&](int64_t t) { return r.tile_mass[t]; });
      r.found->at.mass = left;
    });
    const SampleRow::Masses masses = SampleRow::masses_at(r.bin);
    const int64_t begin = r.found->tile * kHeadTile;
    const int n = SampleRow{a}.width_of(r.found->tile);
    SampleRow::fill(thread_block, masses,
                    [&](int column) { return column < n ? value(mass_at(r, begin + column)) : 0; });
    thread_block.each([&](int lane) {
      if (lane == 0) r.found->column = begin + SampleRow::find_column(masses, r.found->at.mass);
    });
  }
  template <class Value>
  UCAS_ON_DEVICE double of_tile(const Row& r, int64_t tile, int lane, uint32_t low, Value value) const {
    if (tile >= a.tiles || !may_reach(r, tile, low)) return 0;
    double sum = 0;
    const int n = SampleRow{a}.width_of(tile);
    for (int column = lane; column < n; column += 32) sum += value(mass_at(r, tile * kHeadTile + column));
    return sum;
  }

  template <class ThreadBlock>
  UCAS_ON_DEVICE void take_first_of_largest(ThreadBlock& thread_block, const Row& r) const {
    int64_t tile = 0;
    while (r.of_tile[tile].max != r.found->stats.max) ++tile;
    const int column = SampleRow::first_equal(thread_block, r.logits + tile * kHeadTile, SampleRow{a}.width_of(tile),
                                              r.inverse_temperature, r.of_tile[tile].max);
    thread_block.each([&](int lane) {
      if (lane == 0) r.found->column = tile * kHeadTile + column;
    });
  }
};

}  // namespace ucas::gpu

// Kernels of decoding attention; arguments and equations: kernels/gpu/kernels.h.
// Scores are kept in units of ln 2: exp2 is what a device has.
#pragma once

#include "kernels/gpu/kernels.h"

namespace ucas::gpu {

// Keys [first, end) that a row sees, and the blocks [first_block, end_block) that hold them: what has parts.
struct Sight {
  int64_t first, end, first_block, end_block;
  UCAS_ON_DEVICE bool one_block() const { return end_block - first_block == 1; }
};
UCAS_ON_DEVICE Sight sight_of(const AttendDecode& a, int64_t row) {
  const int64_t end = static_cast<int64_t>(a.position[row]) + 1, first = kernels::first_in_sight(end, a.window);
  return {first, end, first / kBlockTokens, (end + kBlockTokens - 1) / kBlockTokens};
}

// The G query heads of a key/value head are shared out among so many blocks: more than 8 do not fit a thread block's
// registers.
inline int64_t blocks_of_group(const AttendDecode& a) { return (a.H / a.K + 7) / 8; }
inline int64_t heads_of_team(const AttendDecode& a) {
  const int64_t blocks = blocks_of_group(a);
  return (a.H / a.K + blocks - 1) / blocks;
}

// The part of one block of keys, for kHeads query heads of a key/value head; fewer in the last thread block of a group.
// A warp has some consecutive keys to itself, scores, weights and values, and the warps' parts are merged at the end:
// while some of them compute, others read.
template <int kHeads>
struct AttendPart {
  static constexpr int kThreads = 256;
  static constexpr int kResident = kHeads <= 4 ? 3 : 2;
  static constexpr const char* kName = "attend_part";
  AttendDecode a;
  uint32_t blocks, group;  // of a key/value head: what it is shared among, its query heads

  explicit AttendPart(const AttendDecode& arguments)
      : a(arguments),
        blocks(static_cast<uint32_t>(blocks_of_group(arguments))),
        group(static_cast<uint32_t>(arguments.H / arguments.K)) {}
  Grid grid() const { return {a.rows, a.K * blocks, a.most_blocks}; }
  int shared_bytes() const {
    const auto d = static_cast<int>(a.d);
    return static_cast<int>(sizeof(float)) * (kHeads * d + kWarps * (2 * kHeads + room_of_warp(d)));
  }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const Sight sight = sight_of(a, thread_block.x);
    if (thread_block.z < sight.first_block || thread_block.z >= sight.end_block) return;
    const Block block = block_of(thread_block, sight);
    const auto d = static_cast<int>(a.d);

    float* q = thread_block.template shared<float>();           // [d / 8][kHeads][8]
    auto* norms = reinterpret_cast<WarpNorm*>(q + kHeads * d);  // [kWarps]
    auto* scratch = reinterpret_cast<float*>(norms + kWarps);
    const auto scratch_of = [&](int lane) { return scratch + lane / 32 * room_of_warp(d); };
    const auto scores_of = [&](int lane) { return scratch_of(lane) + kSlots * 32 * 4; };
    const auto weights_of = [&](int lane) { return scores_of(lane) + kStrips * kScores; };
    const auto slots_of = [&](int lane) { return reinterpret_cast<Bf16*>(scratch_of(lane)) + lane % 32 * 8; };

    thread_block.each([&](int lane) {
      const Share share = share_of(block, lane, slots_of(lane));
      for (int stage = 0; stage < kStages && !block.sees_none(lane); ++stage) fetch(thread_block, share, stage);
      load_q(block, lane, q);
    });
    thread_block.each_of_warp([&](int lane) {
      if (!block.sees_none(lane)) score(thread_block, share_of(block, lane, slots_of(lane)), lane, q, scores_of(lane));
    });

    typename ThreadBlock::template Local<OfHeads> kept, largest, sum;
    thread_block.reduce_of_warp([&](int lane) { return kept[lane] = whole_score(block, lane, scores_of(lane)); },
                                [](const OfHeads& x, const OfHeads& y) { return larger(x, y); }, largest);
    thread_block.each_of_warp([&](int lane) { kept[lane] = weigh(kept[lane], largest[lane], lane, weights_of(lane)); });
    thread_block.reduce_of_warp([&](int lane) { return kept[lane]; },
                                [](const OfHeads& x, const OfHeads& y) { return plus(x, y); }, sum);

    typename ThreadBlock::template Local<Values> values;
    thread_block.each_of_warp([&](int lane) {
      if (lane % 32 == 0) norms[lane / 32] = {largest[lane], sum[lane]};
      values[lane] = Values{};
      if (block.sees_none(lane)) return;
      values[lane] = weighted_values(thread_block, share_of(block, lane, slots_of(lane)), lane, weights_of(lane));
    });
    thread_block.each([&](int lane) { put_values(values[lane], lane, scratch_of(lane)); });  // over slots and weights
    thread_block.each([&](int lane) { write_part(thread_block, lane, norms, scratch); });
  }

 private:
  static constexpr int kKeys = static_cast<int>(kBlockTokens);
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kPadded = (kHeads + 3) / 4 * 4;  // a key's weights, read by fours
  // A lane multiplies this many keys by as large a part of their numbers, so that a number of q serves several keys.
  static constexpr int kStrips = 4, kStripLanes = 32 / kStrips;
  static constexpr int kScores = kHeads * 32 + kStripLanes;  // of a strip, in other banks than the one before it
  // What a lane multiplies it prefetches itself, in stages of so many eights: first one of each of its keys, then of
  // some values. As many stages as fit are active.
  static constexpr int kStage = kStrips, kSlots = 8, kStages = kSlots / kStage;
  static_assert(kThreads == kKeys);

  struct OfHeads {
    float v[kHeads];
  };
  struct WarpNorm {
    OfHeads largest, sum;
  };
  struct Values {
    float v[kHeads][8];
  };
  struct Block {
    int first, end, heads;  // keys in sight, heads in use
    const Bf16 *q, *key, *value;
    // Of a lane's warp.
    UCAS_ON_DEVICE int first_of(int lane) const { return first > lane / 32 * 32 ? first : lane / 32 * 32; }
    UCAS_ON_DEVICE int end_of(int lane) const { return end < lane / 32 * 32 + 32 ? end : lane / 32 * 32 + 32; }
    UCAS_ON_DEVICE bool sees_none(int lane) const { return first_of(lane) >= end_of(lane); }
  };

  // Floats: the slots of stages, the scores in strips and the weights, then the sums of values.
  static UCAS_BOTH_SIDES int room_of_warp(int d) {
    constexpr int kBefore = 32 * (kSlots * 4 + kPadded) + kStrips * kScores;
    const int sums = 32 / (d / 8) * kHeads * d;
    return kBefore > sums ? kBefore : sums;
  }

  static UCAS_ON_DEVICE OfHeads larger(OfHeads x, const OfHeads& y) {
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) x.v[h] = fmaxf(x.v[h], y.v[h]);
    return x;
  }
  static UCAS_ON_DEVICE OfHeads plus(OfHeads x, const OfHeads& y) {
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) x.v[h] += y.v[h];
    return x;
  }

  template <class ThreadBlock>
  UCAS_ON_DEVICE Block block_of(const ThreadBlock& thread_block, const Sight& sight) const {
    const int64_t row = thread_block.x, head = static_cast<uint32_t>(thread_block.y) / blocks,
                  start = thread_block.z * kBlockTokens;
    const int64_t block = a.cache.table[a.slot[row] * a.cache.blocks_of_slot + thread_block.z];
    const Bf16* numbers = a.cache.layer + block * a.cache.block_stride;
    return {static_cast<int>(sight.first > start ? sight.first - start : 0),
            static_cast<int>(sight.end < start + kBlockTokens ? sight.end - start : kBlockTokens),
            heads_in_use(thread_block),
            a.q + row * a.q_stride + first_head(thread_block) * a.d,
            numbers + head * kBlockTokens * a.d,
            numbers + (a.K + head) * kBlockTokens * a.d};
  }
  template <class ThreadBlock>
  UCAS_ON_DEVICE int64_t first_head(const ThreadBlock& thread_block) const {
    const auto y = static_cast<uint32_t>(thread_block.y);
    return y / blocks * group + y % blocks * kHeads;
  }
  template <class ThreadBlock>
  UCAS_ON_DEVICE int heads_in_use(const ThreadBlock& thread_block) const {
    const auto left = static_cast<int>(group - static_cast<uint32_t>(thread_block.y) % blocks * kHeads);
    return left < kHeads ? left : kHeads;
  }

  UCAS_ON_DEVICE void load_q(const Block& block, int lane, float* q) const {
    const float unit = a.scale * 1.44269504f;  // log2 e
    const int chunks = static_cast<int>(a.d) / 8;
    for (int i = lane; i < kHeads * chunks; i += kThreads) {
      const int head = i / chunks, chunk = i % chunks;
      Bf16x8 x{};
      if (head < block.heads) x = load8(block.q + i * 8);
      float* to = q + (chunk * kHeads + head) * 8;
      Floatx4 low, high;
      UCAS_UNROLL
      for (int j = 0; j < 4; ++j) {
        low.v[j] = widen(x.v[j]) * unit;
        high.v[j] = widen(x.v[4 + j]) * unit;
      }
      store4(to, low);
      store4(to + 4, high);
    }
  }

  // What a lane multiplies: of its keys `chunks` eights; of the values an eight of each step-th key from `first` on, if
  // it is one of the `seen` keys from `begin` on. Stages: of keys, and of both, the same for all lanes.
  struct Share {
    int chunk, chunks, of_keys, stages;
    int first, step, begin, seen;
    const Bf16 *key, *value;
    int bytes[kStrips];  // of a key: 0 if it is out of sight
    Bf16* slots;
  };
  UCAS_ON_DEVICE Share share_of(const Block& block, int lane, Bf16* slots) const {
    const int chunks = static_cast<int>(a.d) / 8, strip = lane % 32 / kStripLanes;
    const int groups = 32 / chunks, group = lane % 32 / chunks;
    Share share;
    share.chunk = chunks * strip / kStrips;
    share.chunks = chunks * (strip + 1) / kStrips - share.chunk;
    share.of_keys = (chunks + kStrips - 1) / kStrips;
    share.stages = share.of_keys + (32 + groups * kStage - 1) / (groups * kStage);
    const int own = lane / 32 * 32 + lane % kStripLanes;
    share.key = block.key + own * 8 + share.chunk * (kKeys * 8);
    UCAS_UNROLL
    for (int j = 0; j < kStrips; ++j) {
      share.bytes[j] = own + j * kStripLanes >= block.first && own + j * kStripLanes < block.end ? 16 : 0;
    }
    share.first = lane / 32 * 32 + group;
    share.step = groups;
    share.begin = block.first_of(lane);
    share.seen = group < groups ? block.end_of(lane) - share.begin : 0;
    share.value = block.value + share.first * static_cast<int>(a.d) + lane % 32 % chunks * 8;
    share.slots = slots;
    return share;
  }
  static UCAS_ON_DEVICE Bf16* slots_of(const Share& share, int stage) {
    return share.slots + stage % kStages * (kStage * 32 * 8);
  }
  // Memory of what is out of sight may hold anything, NaN too, and is not read: 0.
  template <class ThreadBlock>
  UCAS_ON_DEVICE void fetch(ThreadBlock& thread_block, const Share& share, int stage) const {
    Bf16* slots = slots_of(share, stage);
    if (stage < share.of_keys) {
      const Bf16* key = share.key + stage * (kKeys * 8);
      if (stage < share.chunks) {
        UCAS_UNROLL
        for (int i = 0; i < kStage; ++i)
          thread_block.fetch(slots + i * 256, key + i * (kStripLanes * 8), share.bytes[i]);
      }
    } else if (stage < share.stages) {
      const int before = (stage - share.of_keys) * kStage * share.step, step = share.step * static_cast<int>(a.d);
      const Bf16* value = share.value + before * static_cast<int>(a.d);
      const int key = share.first + before - share.begin;
      UCAS_UNROLL
      for (int i = 0; i < kStage; ++i) {
        const bool seen = static_cast<uint32_t>(key + i * share.step) < static_cast<uint32_t>(share.seen);
        thread_block.fetch(slots + i * 256, value + i * step, seen ? 16 : 0);
      }
    }
    thread_block.end_bundle();
  }

  // parts[strip][head][key]
  template <class ThreadBlock>
  UCAS_ON_DEVICE void score(ThreadBlock& thread_block, const Share& share, int lane, const float* q,
                            float* parts) const {
    float sum[kStrips][kHeads] = {};
    for (int stage = 0; stage < share.of_keys; ++stage) {
      thread_block.template await<kStages - 1>();
      if (stage < share.chunks) add_products(share, stage, q + (share.chunk + stage) * kHeads * 8, sum);
      fetch(thread_block, share, stage + kStages);
    }
    UCAS_UNROLL
    for (int j = 0; j < kStrips; ++j) {
      UCAS_UNROLL
      for (int h = 0; h < kHeads; ++h) {
        parts[lane % 32 / kStripLanes * kScores + h * 32 + lane % kStripLanes + j * kStripLanes] = sum[j][h];
      }
    }
  }

  // of_chunk: [kHeads][8] of q
  static UCAS_ON_DEVICE void add_products(const Share& share, int stage, const float* of_chunk,
                                          float (&sum)[kStrips][kHeads]) {
    Bf16x8 of_key[kStrips];
    UCAS_UNROLL
    for (int j = 0; j < kStrips; ++j) of_key[j] = load8(slots_of(share, stage) + j * 256);
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      const Floatx4 low = load4(of_chunk + h * 8), high = load4(of_chunk + h * 8 + 4);
      UCAS_UNROLL
      for (int j = 0; j < kStrips; ++j) {
        UCAS_UNROLL
        for (int e = 0; e < 4; ++e) sum[j][h] += widen(of_key[j].v[e]) * low.v[e];
        UCAS_UNROLL
        for (int e = 0; e < 4; ++e) sum[j][h] += widen(of_key[j].v[4 + e]) * high.v[e];
      }
    }
  }

  static UCAS_ON_DEVICE OfHeads whole_score(const Block& block, int key, const float* parts) {
    const bool seen = key >= block.first && key < block.end;
    OfHeads sum;
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      sum.v[h] = -INFINITY;
      if (!seen) continue;
      sum.v[h] = parts[h * 32 + key % 32];
      UCAS_UNROLL
      for (int strip = 1; strip < kStrips; ++strip) sum.v[h] += parts[strip * kScores + h * 32 + key % 32];
    }
    return sum;
  }

  // weights[key][kPadded]. Where a warp has no finite score `largest` becomes one, and all weights 0.
  static UCAS_ON_DEVICE OfHeads weigh(OfHeads x, OfHeads& largest, int key, float* weights) {
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      largest.v[h] = fmaxf(largest.v[h], -3.4e38f);
      weights[key % 32 * kPadded + h] = x.v[h] = exp2f(x.v[h] - largest.v[h]);
    }
    return x;
  }

  template <class ThreadBlock>
  UCAS_ON_DEVICE Values weighted_values(ThreadBlock& thread_block, const Share& share, int lane,
                                        const float* weights) const {
    Values sum{};
    for (int stage = share.of_keys; stage < share.stages; ++stage) {
      thread_block.template await<kStages - 1>();
      const int first = share.first % 32 + (stage - share.of_keys) * kStage * share.step;
      UCAS_UNROLL
      for (int i = 0; i < kStage; ++i) {
        const int key = first + i * share.step;  // of 0, where it is too far
        add_values(load8(slots_of(share, stage) + i * 256), weights + (key < 32 ? key : 31) * kPadded, sum);
      }
      fetch(thread_block, share, stage + kStages);
    }
    return sum;
  }
  static UCAS_ON_DEVICE void add_values(const Bf16x8& value, const float* of_key, Values& sum) {
    UCAS_UNROLL
    for (int four = 0; four < kPadded; four += 4) {
      const Floatx4 weight = load4(of_key + four);
      UCAS_UNROLL
      for (int h = four; h < (four + 4 < kHeads ? four + 4 : kHeads); ++h) {
        UCAS_UNROLL
        for (int e = 0; e < 8; ++e) sum.v[h][e] += weight.v[h - four] * widen(value.v[e]);
      }
    }
  }

  // sums: [lane group][kHeads][d]
  UCAS_ON_DEVICE void put_values(const Values& values, int lane, float* sums) const {
    const auto d = static_cast<int>(a.d);
    const int chunks = d / 8, group = lane % 32 / chunks;
    if (group >= 32 / chunks) return;
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      float* to = sums + (group * kHeads + h) * d + lane % 32 % chunks * 8;
      UCAS_UNROLL
      for (int e = 0; e < 8; e += 4) {
        store4(to + e, {values.v[h][e], values.v[h][e + 1], values.v[h][e + 2], values.v[h][e + 3]});
      }
    }
  }

  // Warp after warp, each as seen from the largest score of all. The only part of a row is its result, in the bits that
  // its merge would give: the weight is 1, and what is added to is 0.
  template <class ThreadBlock>
  UCAS_ON_DEVICE void write_part(const ThreadBlock& thread_block, int lane, const WarpNorm* norms,
                                 const float* scratch) const {
    const auto d = static_cast<int>(a.d);
    const int groups = 32 / (d / 8), heads = heads_in_use(thread_block);
    const int64_t part = (thread_block.x * a.most_blocks + thread_block.z) * a.H + first_head(thread_block);
    const bool alone = sight_of(a, thread_block.x).one_block();
    for (int i = lane * 4; i < heads * d; i += kThreads * 4) {
      const int head = i / d;
      float share[kWarps], largest = norms[0].largest.v[head], sum = 0;
      UCAS_UNROLL
      for (int warp = 1; warp < kWarps; ++warp) largest = fmaxf(largest, norms[warp].largest.v[head]);
      UCAS_UNROLL
      for (int warp = 0; warp < kWarps; ++warp) {
        share[warp] = exp2f(norms[warp].largest.v[head] - largest);
        sum += share[warp] * norms[warp].sum.v[head];
      }
      Floatx4 value = {};
      for (int at = 0; at < groups * kHeads * d; at += kHeads * d) {
        UCAS_UNROLL
        for (int warp = 0; warp < kWarps; ++warp) {
          const Floatx4 of_warp = load4(scratch + warp * room_of_warp(d) + at + i);
          UCAS_UNROLL
          for (int j = 0; j < 4; ++j) value.v[j] += share[warp] * of_warp.v[j];
        }
      }
      if (alone) {
        UCAS_UNROLL
        for (int j = 0; j < 4; ++j) value.v[j] = (0.0f + value.v[j]) / (0.0f + sum);
        store4(a.out + (thread_block.x * a.H + first_head(thread_block)) * d + i, value);
        continue;
      }
      store4(a.part + part * d + i, value);
      if (i % d != 0) continue;
      a.part_norm[(part + head) * 2] = largest;
      a.part_norm[(part + head) * 2 + 1] = sum;
    }
  }
};

// One head of a row: its parts in the order of the blocks, where there are several.
struct AttendMerge {
  static constexpr int kThreads = 128;
  static constexpr const char* kName = "attend_merge";
  AttendDecode a;

  Grid grid() const { return {a.rows, a.H}; }
  int shared_bytes() const { return 0; }
  template <class ThreadBlock>
  UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const {
    const Sight sight = sight_of(a, thread_block.x);
    if (sight.one_block()) return;
    const int64_t first = thread_block.x * a.most_blocks * a.H + thread_block.y;  // part of block b: first + b H
    thread_block.each([&](int lane) {
      float largest = -INFINITY;
      for (int64_t b = sight.first_block; b < sight.end_block; ++b) {
        largest = fmaxf(largest, a.part_norm[(first + b * a.H) * 2]);
      }
      for (int64_t i = lane; i < a.d; i += kThreads) {
        float value = 0, sum = 0;
        for (int64_t b = sight.first_block; b < sight.end_block; ++b) {
          const int64_t part = first + b * a.H;
          const float weight = exp2f(a.part_norm[part * 2] - largest);
          value += weight * a.part[part * a.d + i];
          sum += weight * a.part_norm[part * 2 + 1];
        }
        a.out[(thread_block.x * a.H + thread_block.y) * a.d + i] = narrow(value / sum);
      }
    });
  }
};

// The parts, by the kernel for so many heads, and their merge; start(kernel) launches.
template <int kHeads = 1, class Start>
void start_parts(const AttendDecode& a, Start start) {
  if constexpr (kHeads < 8) {
    if (heads_of_team(a) != kHeads) return start_parts<kHeads + 1>(a, start);
  }
  start(AttendPart<kHeads>(a));
}
template <class Start>
void start_attend_decode(const AttendDecode& a, Start start) {
  start_parts(a, start);
  if (a.most_blocks > 1) start(AttendMerge{a});
}

}  // namespace ucas::gpu

// Bodies of decoding attention; arguments and equations: gpu/kernels.h.
// Scores are kept in units of ln 2: exp2 is what a device has.
#pragma once

#include "gpu/kernels.h"

namespace ucas::gpu {

// Keys [first, end) that a row sees, and the blocks [first_block, end_block) they lie in: what has parts.
struct Sight {
  int64_t first, end, first_block, end_block;
};
UCAS_ON_DEVICE Sight sight_of(const AttendDecode& a, int64_t row) {
  const int64_t end = static_cast<int64_t>(a.position[row]) + 1, first = kernels::first_in_sight(end, a.window);
  return {first, end, first / kBlockTokens, (end + kBlockTokens - 1) / kBlockTokens};
}

// The G query heads of a key/value head are shared out among so many teams: more than 8 do not fit a team's registers.
inline int64_t teams_of_group(const AttendDecode& a) { return (a.H / a.K + 7) / 8; }
inline int64_t heads_of_team(const AttendDecode& a) {
  const int64_t teams = teams_of_group(a);
  return (a.H / a.K + teams - 1) / teams;
}

// The part of one block of keys, for kHeads query heads of a key/value head; fewer in the last team of a group.
template <int kHeads>
struct AttendPart {
  static constexpr int kThreads = 256;
  static constexpr int kResident = kHeads <= 4 ? 3 : 2;
  static constexpr const char* kName = "attend_part";
  AttendDecode a;
  int64_t teams;

  explicit AttendPart(const AttendDecode& arguments) : a(arguments), teams(teams_of_group(arguments)) {}
  Grid grid() const { return {a.rows, a.K * teams, a.most_blocks}; }
  int shared_bytes() const {
    const auto d = static_cast<int>(a.d);
    const int before = kHeads * d + (kStrips * kHeads > kPadded ? kStrips * kHeads : kPadded) * kKeys;
    const int sums = kThreads / (d / 8) * kHeads * d;
    return static_cast<int>(sizeof(float)) * (before > sums ? before : sums);
  }
  template <class Team>
  UCAS_ON_DEVICE void operator()(Team& team) const {
    const Sight sight = sight_of(a, team.x);
    if (team.z < sight.first_block || team.z >= sight.end_block) return;
    const Block block = block_of(team, sight);

    float* q = team.template shared<float>();             // [kHeads][d]
    float* scratch = q + kHeads * static_cast<int>(a.d);  // what follows q
    team.each([&](int lane) { load_q(block, lane, q); });
    team.each([&](int lane) { score(block, lane, q, scratch); });

    typename Team::template Local<OfHeads> kept;
    const OfHeads largest = team.reduce([&](int lane) { return kept[lane] = whole_score(block, lane, scratch); },
                                        [](const OfHeads& x, const OfHeads& y) { return larger(x, y); });
    const OfHeads sum = team.reduce([&](int lane) { return weigh(kept[lane], largest, lane, scratch); },
                                    [](const OfHeads& x, const OfHeads& y) { return plus(x, y); });

    typename Team::template Local<Values> values;
    team.each([&](int lane) { values[lane] = weighted_values(block, lane, scratch); });
    float* sums = team.template shared<float>();  // [lane group][kHeads][d], over q and the weights
    team.each([&](int lane) { put_values(values[lane], lane, sums); });
    team.each([&](int lane) {
      write_part(block, lane, sums);
      UCAS_UNROLL
      for (int h = 0; h < kHeads; ++h) {  // registers have no index
        if (lane == h && h < block.heads) {
          block.norm[h * 2] = largest.v[h];
          block.norm[h * 2 + 1] = sum.v[h];
        }
      }
    });
  }

 private:
  static constexpr int kKeys = static_cast<int>(kBlockTokens);
  static constexpr int kPadded = (kHeads + 3) / 4 * 4;  // a key's weights, read by fours
  // A lane multiplies this many keys by as large a part of their numbers, so that a number of q serves several keys.
  static constexpr int kStrips = 2, kStripLanes = kKeys / kStrips;
  static constexpr int kFlight = 4;  // reads under way at a time: of each key, and of values
  static_assert(kThreads == kKeys);

  struct OfHeads {
    float v[kHeads];
  };
  struct Values {
    float v[kHeads][8];
  };
  struct Block {
    int first, end, heads;  // keys in sight, heads in use
    const Bf16 *q, *key, *value;
    float *part, *norm;
  };

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

  template <class Team>
  UCAS_ON_DEVICE Block block_of(const Team& team, const Sight& sight) const {
    const int64_t row = team.x, head = team.y / teams, start = team.z * kBlockTokens, G = a.H / a.K;
    const int64_t first_of_group = team.y % teams * kHeads, first_head = head * G + first_of_group;
    const int64_t left = G - first_of_group;
    const int64_t block = a.cache.table[a.slot[row] * a.cache.blocks_of_slot + team.z];
    const Bf16* numbers = a.cache.layer + block * a.cache.block_stride;
    const int64_t part = (row * a.most_blocks + team.z) * a.H + first_head;
    return {static_cast<int>(sight.first > start ? sight.first - start : 0),
            static_cast<int>(sight.end < start + kBlockTokens ? sight.end - start : kBlockTokens),
            static_cast<int>(left < kHeads ? left : kHeads),
            a.q + row * a.q_stride + first_head * a.d,
            numbers + head * kBlockTokens * a.d,
            numbers + (a.K + head) * kBlockTokens * a.d,
            a.part + part * a.d,
            a.part_norm + part * 2};
  }

  UCAS_ON_DEVICE void load_q(const Block& block, int lane, float* q) const {
    const float unit = a.scale * 1.44269504f;  // log2 e
    const auto d = static_cast<int>(a.d);
    for (int i = lane * 8; i < kHeads * d; i += kThreads * 8) {
      const bool used = i < block.heads * d;
      Bf16x8 x{};
      if (used) x = load8(block.q + i);
      for (int j = 0; j < 8; ++j) q[i + j] = widen(x.v[j]) * unit;
    }
  }

  // parts[strip][head][key]; keys out of sight get another's score.
  UCAS_ON_DEVICE void score(const Block& block, int lane, const float* q, float* parts) const {
    const int strip = lane / kStripLanes, chunks = static_cast<int>(a.d) / 8;
    const int end = chunks * (strip + 1) / kStrips;
    const Bf16* key[kStrips];
    UCAS_UNROLL
    for (int j = 0; j < kStrips; ++j) {
      const int own = lane % kStripLanes + j * kStripLanes;
      key[j] = block.key + (own < block.first ? block.first : own < block.end ? own : block.end - 1) * 8;
    }
    float sum[kStrips][kHeads] = {};
    int chunk = chunks * strip / kStrips;
    for (; chunk + kFlight <= end; chunk += kFlight) add_products<kFlight>(key, q, chunk, sum);
    for (; chunk < end; ++chunk) add_products<1>(key, q, chunk, sum);
    UCAS_UNROLL
    for (int j = 0; j < kStrips; ++j) {
      UCAS_UNROLL
      for (int h = 0; h < kHeads; ++h) {
        parts[(strip * kHeads + h) * kKeys + lane % kStripLanes + j * kStripLanes] = sum[j][h];
      }
    }
  }

  template <int kCount>
  UCAS_ON_DEVICE void add_products(const Bf16* const (&key)[kStrips], const float* q, int chunk,
                                   float (&sum)[kStrips][kHeads]) const {
    Bf16x8 read[kCount][kStrips];
    UCAS_UNROLL
    for (int i = 0; i < kCount; ++i) {
      UCAS_UNROLL
      for (int j = 0; j < kStrips; ++j) read[i][j] = load8(key[j] + (chunk + i) * kKeys * 8);
    }
    UCAS_UNROLL
    for (int i = 0; i < kCount; ++i) {
      UCAS_UNROLL
      for (int h = 0; h < kHeads; ++h) {
        const float* of_head = q + h * static_cast<int>(a.d) + (chunk + i) * 8;
        const Floatx4 low = load4(of_head), high = load4(of_head + 4);
        UCAS_UNROLL
        for (int j = 0; j < kStrips; ++j) {
          UCAS_UNROLL
          for (int e = 0; e < 4; ++e) sum[j][h] += widen(read[i][j].v[e]) * low.v[e];
          UCAS_UNROLL
          for (int e = 0; e < 4; ++e) sum[j][h] += widen(read[i][j].v[4 + e]) * high.v[e];
        }
      }
    }
  }

  static UCAS_ON_DEVICE OfHeads whole_score(const Block& block, int key, const float* parts) {
    OfHeads sum;
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      sum.v[h] = parts[h * kKeys + key];
      UCAS_UNROLL
      for (int strip = 1; strip < kStrips; ++strip) sum.v[h] += parts[(strip * kHeads + h) * kKeys + key];
      if (key < block.first || key >= block.end) sum.v[h] = -INFINITY;
    }
    return sum;
  }

  // weights[key][kPadded]
  static UCAS_ON_DEVICE OfHeads weigh(OfHeads x, const OfHeads& largest, int key, float* weights) {
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) weights[key * kPadded + h] = x.v[h] = exp2f(x.v[h] - largest.v[h]);
    return x;
  }

  // A lane has 8 numbers of every so many-th key in sight; memory of the others may hold anything, NaN too.
  UCAS_ON_DEVICE Values weighted_values(const Block& block, int lane, const float* weights) const {
    const int chunks = static_cast<int>(a.d) / 8, groups = kThreads / chunks;
    const int chunk = lane % chunks, group = lane / chunks;
    Values sum{};
    if (group >= groups) return sum;
    const Bf16* value = block.value + chunk * 8;
    int key = block.first + group;
    for (; key + (kFlight - 1) * groups < block.end; key += kFlight * groups) {
      add_values<kFlight>(value, weights, key, groups, sum);
    }
    for (; key < block.end; key += groups) add_values<1>(value, weights, key, groups, sum);
    return sum;
  }

  template <int kCount>
  UCAS_ON_DEVICE void add_values(const Bf16* value, const float* weights, int key, int step, Values& sum) const {
    Bf16x8 read[kCount];
    UCAS_UNROLL
    for (int i = 0; i < kCount; ++i) read[i] = load8(value + (key + i * step) * static_cast<int>(a.d));
    UCAS_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float* of_key = weights + (key + i * step) * kPadded;
      UCAS_UNROLL
      for (int four = 0; four < kPadded; four += 4) {
        const Floatx4 weight = load4(of_key + four);
        UCAS_UNROLL
        for (int h = four; h < (four + 4 < kHeads ? four + 4 : kHeads); ++h) {
          UCAS_UNROLL
          for (int e = 0; e < 8; ++e) sum.v[h][e] += weight.v[h - four] * widen(read[i].v[e]);
        }
      }
    }
  }

  UCAS_ON_DEVICE void put_values(const Values& values, int lane, float* sums) const {
    const auto d = static_cast<int>(a.d);
    const int chunks = d / 8, group = lane / chunks;
    if (group >= kThreads / chunks) return;
    UCAS_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      float* to = sums + (group * kHeads + h) * d + lane % chunks * 8;
      UCAS_UNROLL
      for (int e = 0; e < 8; e += 4) {
        store4(to + e, {values.v[h][e], values.v[h][e + 1], values.v[h][e + 2], values.v[h][e + 3]});
      }
    }
  }

  UCAS_ON_DEVICE void write_part(const Block& block, int lane, const float* sums) const {
    const auto d = static_cast<int>(a.d);
    const int groups = kThreads / (d / 8);
    for (int i = lane; i < block.heads * d; i += kThreads) {
      float sum = 0;
      for (int group = 0; group < groups; ++group) sum += sums[group * kHeads * d + i];
      block.part[i] = sum;
    }
  }
};

// One head of a row: its parts in the order of the blocks.
struct AttendMerge {
  static constexpr int kThreads = 128;
  static constexpr const char* kName = "attend_merge";
  AttendDecode a;

  Grid grid() const { return {a.rows, a.H}; }
  int shared_bytes() const { return 0; }
  template <class Team>
  UCAS_ON_DEVICE void operator()(Team& team) const {
    const Sight sight = sight_of(a, team.x);
    const int64_t first = team.x * a.most_blocks * a.H + team.y;  // part of block b: first + b H
    team.each([&](int lane) {
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
        a.out[(team.x * a.H + team.y) * a.d + i] = narrow(value / sum);
      }
    });
  }
};

// The parts and their merge; start(body) launches.
template <class Start>
void start_attend_decode(const AttendDecode& a, Start start) {
  switch (heads_of_team(a)) {
    case 1:
      start(AttendPart<1>(a));
      break;
    case 2:
      start(AttendPart<2>(a));
      break;
    case 3:
      start(AttendPart<3>(a));
      break;
    case 4:
      start(AttendPart<4>(a));
      break;
    case 5:
      start(AttendPart<5>(a));
      break;
    case 6:
      start(AttendPart<6>(a));
      break;
    case 7:
      start(AttendPart<7>(a));
      break;
    default:
      start(AttendPart<8>(a));
      break;
  }
  start(AttendMerge{a});
}

}  // namespace ucas::gpu

// CPU emulation of the LM head's statistics, their gradient and sampling: against double, the CPU kernels and
// Sampler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"
#include "kernels/gpu/kernels.h"
#include "kernels/lm_head.h"
#include "rollout/sampling/sampler.h"
#include "support/gpu_emulation.h"

namespace ucas::gpu::lm_head_tests {  // a folder's tests are compiled together
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kUntouched = 4711;
constexpr int64_t kMargin = 8;
constexpr uint64_t kSeed = 23;
constexpr uint32_t kStep = 6;
constexpr SamplerRun kRun{kSeed, kStep};

// Rows of logits with some numbers between them that no kernel may read.
struct Logits {
  int64_t rows, vocab, stride;
  std::vector<float> v;

  Logits(int64_t R, int64_t V, double scale = 3, int64_t gap = 5)
      : rows(R), vocab(V), stride(V + gap), v(R * stride + kMargin, kNan) {
    Rng rng(41, static_cast<uint64_t>(V));
    for (int64_t r = 0; r < R; ++r) {
      for (float& logit : row(r)) logit = static_cast<float>(scale * rng.normal());
    }
  }
  Logits(int64_t R, std::vector<float> of_each) : Logits(R, static_cast<int64_t>(of_each.size())) {
    for (int64_t r = 0; r < R; ++r) std::copy(of_each.begin(), of_each.end(), row(r).begin());
  }
  std::span<float> row(int64_t r) { return {v.data() + r * stride, static_cast<size_t>(vocab)}; }
  int64_t tiles() const { return head_tiles(vocab); }
};

struct Tiles {
  std::vector<TileStats> of_tile;
  std::vector<float> chosen;
  Tiles(const Logits& logits)
      : of_tile(logits.rows * logits.tiles() + kMargin, {kUntouched, 0, 0, 0, 0}),
        chosen(logits.rows + kMargin, kUntouched) {}
};

// Tiles [first, end) of the rows, from a matrix that has only these columns.
void add_tiles(const Logits& logits, float inverse_temperature, const std::vector<int32_t>& target, int64_t first,
               int64_t end, Tiles& into) {
  host().head_stats_of_tiles(nullptr, {.rows = logits.rows,
                                       .columns = std::min(end * kHeadTile, logits.vocab) - first * kHeadTile,
                                       .stride = logits.stride,
                                       .first_tile = first,
                                       .tiles = logits.tiles(),
                                       .inverse_temperature = inverse_temperature,
                                       .logits = logits.v.data() + first * kHeadTile,
                                       .target = target.empty() ? nullptr : target.data(),
                                       .of_tile = into.of_tile.data(),
                                       .chosen = into.chosen.data()});
}
Tiles tiles_of(const Logits& logits, float inverse_temperature, const std::vector<int32_t>& target = {}) {
  Tiles tiles(logits);
  add_tiles(logits, inverse_temperature, target, 0, logits.tiles(), tiles);
  for (int64_t i = 0; i < kMargin; ++i) {
    EXPECT_EQ(tiles.of_tile[logits.rows * logits.tiles() + i].max, kUntouched);
    EXPECT_EQ(tiles.chosen[logits.rows + i], kUntouched);
  }
  return tiles;
}

struct Rows {
  std::vector<float> logprob, entropy, confidence, margin, lse;
};
Rows rows_of(const Logits& logits, float inverse_temperature, const Tiles& tiles) {
  const std::vector<float> untouched(logits.rows + kMargin, kUntouched);
  Rows rows{untouched, untouched, untouched, untouched, untouched};
  host().head_stats_of_rows(nullptr, {.rows = logits.rows,
                                      .tiles = logits.tiles(),
                                      .vocab = logits.vocab,
                                      .inverse_temperature = inverse_temperature,
                                      .of_tile = tiles.of_tile.data(),
                                      .chosen = tiles.chosen.data(),
                                      .logprob = rows.logprob.data(),
                                      .entropy = rows.entropy.data(),
                                      .confidence = rows.confidence.data(),
                                      .margin = rows.margin.data(),
                                      .lse = rows.lse.data()});
  for (const auto* out : {&rows.logprob, &rows.entropy, &rows.confidence, &rows.margin, &rows.lse}) {
    for (int64_t i = 0; i < kMargin; ++i) EXPECT_EQ((*out)[logits.rows + i], kUntouched);
  }
  return rows;
}

struct Exact {
  double lse, entropy, confidence, most;
};
Exact exact(std::span<const float> logits, double inverse_temperature) {
  double most = -1e300, sum = 0, weighted = 0, total = 0;
  for (float x : logits) most = std::max(most, x * inverse_temperature);
  for (float x : logits) {
    const double d = x * inverse_temperature - most, e = std::exp(d);
    sum += e;
    weighted += e > 0 ? e * d : 0;
    total += x * inverse_temperature;
  }
  const double lse = most + std::log(sum);
  return {lse, std::log(sum) - weighted / sum, lse - total / static_cast<double>(logits.size()), most};
}

std::vector<int32_t> some_targets(const Logits& logits) {
  std::vector<int32_t> target;
  for (int64_t r = 0; r < logits.rows; ++r) {
    target.push_back(static_cast<int32_t>(r == 0 ? logits.vocab - 1 : r * 977 % logits.vocab));
  }
  return target;
}

TEST(gpu_lm_head, the_statistics_agree_with_double_whatever_the_length_of_rows) {
  for (int64_t vocab : {1, 7, 512, 2048, 2049, 5000, 151936}) {
    for (float inverse_temperature : {1.0f, 1.25f}) {
      Logits logits(vocab > 5000 ? 1 : 3, vocab);
      const std::vector<int32_t> target = some_targets(logits);
      const Rows rows = rows_of(logits, inverse_temperature, tiles_of(logits, inverse_temperature, target));
      for (int64_t r = 0; r < logits.rows; ++r) {
        const Exact want = exact(logits.row(r), inverse_temperature);
        const double z = logits.row(r)[target[r]] * inverse_temperature;
        EXPECT_NEAR(rows.lse[r], want.lse, 1e-5) << vocab;
        EXPECT_NEAR(rows.logprob[r], z - want.lse, 1e-5) << vocab;
        EXPECT_NEAR(rows.entropy[r], want.entropy, 1e-5 * (1 + want.entropy)) << vocab;
        EXPECT_NEAR(rows.confidence[r], want.confidence, 1e-5) << vocab;
        EXPECT_NEAR(rows.margin[r], z - want.most, 1e-5) << vocab;
      }
    }
  }
}

TEST(gpu_lm_head, a_tile_has_what_the_cpu_kernel_says_of_its_columns) {
  Logits logits(2, 3000);
  const Tiles tiles = tiles_of(logits, 0.8f);
  for (int64_t r = 0; r < 2; ++r) {
    for (int64_t t = 0; t < 2; ++t) {
      kernels::RowStats want;
      kernels::row_stats(logits.row(r).data() + t * kHeadTile, t == 0 ? kHeadTile : 3000 - kHeadTile, 0.8f, want);
      const TileStats& got = tiles.of_tile[r * 2 + t];
      EXPECT_EQ(got.max, want.max);
      EXPECT_NEAR(got.sum, want.sum, 1e-6 * want.sum);
      EXPECT_NEAR(got.weighted, want.weighted, -1e-6 * want.weighted);
      EXPECT_NEAR(got.total, want.total, 1e-2);  // of thousands of either sign
    }
  }
}

TEST(gpu_lm_head, tiles_may_come_a_few_at_a_time_and_rows_in_any_company) {
  Logits logits(3, 9000);
  const std::vector<int32_t> target = {2047, 2048, 8999};
  const Tiles whole = tiles_of(logits, 1, target);
  Tiles pieces(logits);
  add_tiles(logits, 1, target, 0, 1, pieces);
  EXPECT_EQ(pieces.chosen[0], logits.row(0)[2047]);
  EXPECT_EQ(pieces.chosen[1], kUntouched);
  add_tiles(logits, 1, target, 3, 5, pieces);
  EXPECT_EQ(pieces.chosen[1], kUntouched);
  EXPECT_EQ(pieces.chosen[2], logits.row(2)[8999]);
  EXPECT_EQ(pieces.of_tile[1].max, kUntouched);
  add_tiles(logits, 1, target, 1, 3, pieces);
  EXPECT_EQ(pieces.chosen, whole.chosen);

  Logits last(1, {logits.row(2).begin(), logits.row(2).end()});
  const Tiles alone = tiles_of(last, 1, {target[2]});
  for (int64_t t = 0; t < 5; ++t) {
    EXPECT_EQ(pieces.of_tile[10 + t].sum, whole.of_tile[10 + t].sum);
    EXPECT_EQ(alone.of_tile[t].weighted, whole.of_tile[10 + t].weighted);
  }
  EXPECT_EQ(rows_of(last, 1, alone).entropy[0], rows_of(logits, 1, whole).entropy[2]);
}

TEST(gpu_lm_head, extreme_logits_neither_overflow_nor_vanish) {
  Logits logits(1, 2050);
  std::ranges::fill(logits.row(0), -3e38f);  // a whole tile of them, too
  logits.row(0)[2] = logits.row(0)[7] = 3e38f;
  const Rows rows = rows_of(logits, 1, tiles_of(logits, 1, {7}));
  EXPECT_NEAR(rows.entropy[0], std::log(2.0), 1e-6);
  EXPECT_EQ(rows.margin[0], 0);
}

// --- gradient -----------------------------------------------------------------------------------------------------

struct Slopes {
  float g, e, u;
};

TEST(gpu_lm_head, the_gradient_is_that_of_the_cpu_kernel_and_lies_where_the_logits_lay) {
  const std::vector<Slopes> slopes = {{0.7f, 0, 0}, {0, -0.4f, 0}, {0, 0, 0.3f}, {-1, 0.2f, 0.1f}, {0, 0, 0}};
  const auto rows = static_cast<int64_t>(slopes.size());
  for (int64_t columns : {1, 7, 513, 2048}) {
    Logits logits(rows, columns);
    if (columns > 1) logits.row(1)[columns / 2] = -kInfinity;  // has no probability
    const Logits before = logits;
    const int64_t first = 4096;
    const std::vector<int32_t> target = {4096, 4095, static_cast<int32_t>(first + columns), 4096, 4096};
    std::vector<float> lse, entropy, g, e, u;
    for (int64_t r = 0; r < rows; ++r) {
      lse.push_back(static_cast<float>(exact(logits.row(r), 0.8).lse) + 1);
      entropy.push_back(2.5f);
      g.push_back(slopes[r].g);
      e.push_back(slopes[r].e);
      u.push_back(slopes[r].u);
    }
    host().head_gradient(nullptr, {.rows = rows,
                                   .columns = columns,
                                   .stride = logits.stride,
                                   .first_column = first,
                                   .inverse_temperature = 0.8f,
                                   .inverse_vocab = 1e-4f,
                                   .target = target.data(),
                                   .lse = lse.data(),
                                   .entropy = entropy.data(),
                                   .g = g.data(),
                                   .e = e.data(),
                                   .u = u.data(),
                                   .logits = logits.v.data()});
    std::vector<float> want(columns);
    for (int64_t r = 0; r < rows; ++r) {
      kernels::row_gradient(before.v.data() + r * before.stride, columns, target[r] - first,
                            {lse[r], entropy[r], g[r], e[r], u[r], 0.8f, 1e-4f}, want.data());
      const auto* got = reinterpret_cast<const unsigned char*>(logits.row(r).data());
      for (int64_t i = 0; i < columns; ++i) {
        Bf16 slope;
        std::memcpy(&slope, got + i * sizeof slope, sizeof slope);
        ASSERT_NEAR(widen(slope), want[i], 1e-7 + std::abs(want[i]) / 256) << columns << " row " << r << " at " << i;
      }
      // What the rounded numbers do not cover is as it was.
      const auto* old = reinterpret_cast<const unsigned char*>(before.v.data() + r * before.stride);
      EXPECT_EQ(std::memcmp(got + columns * 2, old + columns * 2, logits.stride * 4 - columns * 2), 0);
    }
  }
}

TEST(gpu_lm_head, a_row_without_slopes_is_zero_even_where_its_logits_are_not_numbers) {
  Logits logits(1, {kNan, kInfinity, 1});
  const std::vector<float> zero = {0}, nan = {kNan};
  const std::vector<int32_t> target = {1};
  host().head_gradient(nullptr, {1, 3, logits.stride, 0, 1, 0.3f, target.data(), nan.data(), nan.data(), zero.data(),
                                 zero.data(), zero.data(), logits.v.data()});
  const auto* bytes = reinterpret_cast<const unsigned char*>(logits.v.data());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(bytes[i], 0);
}

// --- sampling ------------------------------------------------------------------------------------------------------

struct Drawing {
  std::vector<SamplerState> state;
  std::vector<DeviceSampledToken> sampled;
  std::vector<int32_t> token, position;

  explicit Drawing(int64_t rows)
      : state(rows),
        sampled(rows + kMargin, {4711, 0, 0, 0, 0, 0}),
        token(rows + kMargin, 4711),
        position(rows + kMargin, 100) {
    for (int64_t r = 0; r < rows; ++r) state[r] = {static_cast<uint32_t>(r / 7), static_cast<uint32_t>(r % 7), 11, 0};
  }
  static double uniform_of(const SamplerState& s) {
    return uniform(SampleKey{kSeed, kStep, s.problem, s.response, s.sample});
  }
  void sample(const Logits& logits, double temperature, bool feeds = true) {
    const auto inverse = static_cast<float>(1 / temperature);
    const bool any_greedy = std::ranges::any_of(state, [](const SamplerState& s) { return s.greedy != 0; });
    const Tiles tiles = tiles_of(logits, inverse), greedy = any_greedy ? tiles_of(logits, 1) : tiles;
    host().sample(nullptr, {.rows = logits.rows,
                            .vocab = logits.vocab,
                            .stride = logits.stride,
                            .tiles = logits.tiles(),
                            .inverse_temperature = inverse,
                            .run = &kRun,
                            .logits = logits.v.data(),
                            .of_tile = tiles.of_tile.data(),
                            .of_tile_greedy = any_greedy ? greedy.of_tile.data() : nullptr,
                            .state = state.data(),
                            .sampled = sampled.data(),
                            .token = feeds ? token.data() : nullptr,
                            .position = position.data()});
    for (int64_t i = 0; i < kMargin; ++i) {
      EXPECT_EQ(sampled[logits.rows + i].token, 4711);
      EXPECT_EQ(token[logits.rows + i], 4711);
      EXPECT_EQ(position[logits.rows + i], 100);
    }
  }
};

void expect_near(const DeviceSampledToken& got, const SampledToken& want) {
  EXPECT_EQ(got.token, want.token);
  EXPECT_NEAR(got.logprob, want.logprob, 1e-5);
  EXPECT_EQ(got.whole_logprob, got.logprob);
  EXPECT_NEAR(got.entropy, want.entropy, 2e-5);
  EXPECT_NEAR(got.confidence, want.confidence, 1e-5);
  EXPECT_EQ(got.logit, want.logit);
}

TEST(gpu_lm_head, a_draw_is_the_samplers) {
  int64_t draws = 0, others = 0;
  for (int64_t vocab : {1, 7, 512, 2048, 2049, 5000, 151936}) {
    for (double temperature : {1.0, 0.6}) {
      Logits logits(vocab > 5000 ? 2 : 60, vocab, vocab > 5000 ? 1 : 3);
      Sampler sampler({.temperature = temperature});
      Drawing drawing(logits.rows);
      const std::vector<SamplerState> keys = drawing.state;
      drawing.sample(logits, temperature);
      for (int64_t r = 0; r < logits.rows; ++r, ++draws) {
        const SampledToken want = sampler.sample(logits.row(r), Drawing::uniform_of(keys[r]));
        if (drawing.sampled[r].token == want.token) {
          expect_near(drawing.sampled[r], want);
        } else {
          ++others;  // where the uniform falls on the edge of a token
        }
      }
    }
  }
  EXPECT_GT(draws, 600);
  EXPECT_LE(others, 1);
}

TEST(gpu_lm_head, what_is_drawn_has_the_statistics_that_training_will_see) {
  Logits logits(20, 5000);
  Drawing drawing(20);
  drawing.sample(logits, 0.6);
  std::vector<int32_t> target;
  for (int64_t r = 0; r < 20; ++r) target.push_back(drawing.sampled[r].token);
  const auto inverse = static_cast<float>(1 / 0.6);
  const Rows rows = rows_of(logits, inverse, tiles_of(logits, inverse, target));
  for (int64_t r = 0; r < 20; ++r) {
    EXPECT_EQ(drawing.sampled[r].logprob, rows.logprob[r]);
    EXPECT_EQ(drawing.sampled[r].entropy, rows.entropy[r]);
    EXPECT_EQ(drawing.sampled[r].confidence, rows.confidence[r]);
  }
}

// Columns of every level of the search, on both sides of its edges; the others have no probability at all.
TEST(gpu_lm_head, tokens_are_drawn_as_often_as_they_are_probable_and_the_improbable_never) {
  const std::vector<int64_t> columns = {1, 7, 8, 127, 128, 129, 2047, 2048, 4103, 4104, 4999};
  std::vector<float> row(5000, -500);
  double sum = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    row[columns[i]] = std::log(static_cast<float>(i + 1));
    sum += static_cast<double>(i + 1);
  }
  const int64_t draws = 2000;
  Logits logits(draws, row);
  Drawing drawing(draws);
  drawing.sample(logits, 1);
  std::vector<int64_t> count(5000);
  for (int64_t r = 0; r < draws; ++r) ++count[drawing.sampled[r].token];
  int64_t found = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    const double p = static_cast<double>(i + 1) / sum, mean = p * draws;
    EXPECT_NEAR(static_cast<double>(count[columns[i]]), mean, 5 * std::sqrt(mean * (1 - p))) << columns[i];
    found += count[columns[i]];
  }
  EXPECT_EQ(found, draws);
}

TEST(gpu_lm_head, a_greedy_row_takes_the_first_of_the_largest_and_reports_at_temperature_1) {
  Logits logits(5, 5000);
  const std::vector<std::vector<int64_t>> largest = {{0}, {4999}, {2047, 2048}, {9, 8, 300, 2300}, {4100, 4097, 4098}};
  const std::vector<int32_t> first = {0, 4999, 2047, 8, 4097};
  Sampler sampler({.temperature = 0});
  for (int64_t r = 0; r < 5; ++r) {
    for (int64_t column : largest[r]) logits.row(r)[column] = 50;
  }
  Drawing drawing(5);
  for (SamplerState& state : drawing.state) state.greedy = 1;
  drawing.sample(logits, 0.6);
  for (int64_t r = 0; r < 5; ++r) {
    EXPECT_EQ(drawing.sampled[r].token, first[r]);
    expect_near(drawing.sampled[r], sampler.sample(logits.row(r), 0));
  }
}

TEST(gpu_lm_head, rows_that_are_not_finite_give_no_token) {
  for (float bad : {kNan, kInfinity, -kInfinity}) {
    for (int64_t place : {0, 300, 2047, 2048, 4999}) {
      Logits logits(3, 5000);
      logits.row(1)[place] = logits.row(2)[place] = bad;
      Drawing drawing(3);
      drawing.state[2].greedy = 1;
      drawing.sample(logits, 1);
      EXPECT_EQ(Sampler({}).sample(logits.row(1), 0.5).token, -1);
      EXPECT_GE(drawing.sampled[0].token, 0);
      for (int64_t r : {1, 2}) {
        EXPECT_EQ(drawing.sampled[r].token, -1) << bad << " at " << place;
        EXPECT_EQ(drawing.token[r], 4711);
      }
    }
  }
}

TEST(gpu_lm_head, a_drawn_token_is_fed_and_its_row_goes_on) {
  Logits logits(3, 600);
  logits.row(2)[5] = kNan;
  Drawing fed(3), kept(3);
  fed.state[1].greedy = kept.state[1].greedy = 1;
  fed.sample(logits, 1);
  kept.sample(logits, 1, false);
  for (int64_t r = 0; r < 3; ++r) {
    EXPECT_EQ(fed.sampled[r].token, kept.sampled[r].token);
    EXPECT_EQ(fed.token[r], r == 2 ? 4711 : fed.sampled[r].token);
    EXPECT_EQ(fed.position[r], 101);
    EXPECT_EQ(fed.state[r].sample, 12u);
    EXPECT_EQ(kept.token[r], 4711);
    EXPECT_EQ(kept.position[r], 100);
    EXPECT_EQ(kept.state[r].sample, 11u);
  }
  fed.sample(logits, 1);
  EXPECT_EQ(fed.state[0].sample, 13u);
  EXPECT_EQ(fed.sampled[0].token, Sampler({}).sample(logits.row(0), uniform(SampleKey{kSeed, kStep, 0, 0, 12})).token);
}

TEST(gpu_lm_head, a_draw_knows_nothing_of_other_rows) {
  Logits logits(4, 2500), last(1, {logits.row(3).begin(), logits.row(3).end()});
  Drawing together(4), alone(1);
  alone.state[0] = together.state[3];
  together.sample(logits, 0.9);
  alone.sample(last, 0.9);
  EXPECT_EQ(alone.sampled[0].token, together.sampled[3].token);
  EXPECT_EQ(alone.sampled[0].logprob, together.sampled[3].logprob);
}

TEST(gpu_lm_head, no_rows_are_no_work) {
  Logits logits(0, 3000);
  rows_of(logits, 1, tiles_of(logits, 1));
  Drawing(0).sample(logits, 1);
  host().head_gradient(nullptr, {.rows = 0, .columns = 2048, .stride = 3000, .logits = logits.v.data()});
  EXPECT_TRUE(std::ranges::all_of(logits.v, [](float x) { return std::isnan(x); }));
}

}  // namespace
}  // namespace ucas::gpu::lm_head_tests

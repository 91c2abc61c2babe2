// CPU emulation of sampling with top_k, top_p and min_p, against the CPU's Sampler: the same token for the same
// uniform, ties included, and the same log-probs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/str.h"
#include "kernels/gpu/kernels.h"
#include "rollout/sampling/sampler.h"
#include "support/gpu_emulation.h"

namespace ucas::gpu::truncated_sample_tests {  // a folder's tests are compiled together
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint64_t kSeed = 29;
constexpr uint32_t kStep = 4;
constexpr SamplerRun kRun{kSeed, kStep};

struct Sampled {
  std::vector<DeviceSampledToken> sampled;
  std::vector<int32_t> token, position;
  std::vector<SamplerState> state;
};

SamplerState key_of(int64_t row) { return {static_cast<uint32_t>(row / 5), static_cast<uint32_t>(row % 5), 17, 0}; }
double uniform_of(int64_t row) {
  const SamplerState s = key_of(row);
  return uniform(SampleKey{kSeed, kStep, s.problem, s.response, s.sample});
}

// Rows of equal length with numbers between them that may not be read.
Sampled sample(const std::vector<std::vector<float>>& rows, const SamplingConfig& config,
               const std::vector<int64_t>& greedy = {}) {
  const auto R = static_cast<int64_t>(rows.size()), V = static_cast<int64_t>(rows[0].size()), stride = V + 3;
  std::vector<float> logits(R * stride, std::numeric_limits<float>::quiet_NaN());
  for (int64_t r = 0; r < R; ++r) std::ranges::copy(rows[r], logits.begin() + r * stride);
  const auto inverse = static_cast<float>(1 / config.temperature);
  const int64_t tiles = head_tiles(V);
  std::vector<TileStats> at_temperature(R * tiles), at_one(R * tiles);
  HeadStatsOfTiles stats{.rows = R, .columns = V, .stride = stride, .first_tile = 0, .tiles = tiles};
  stats.inverse_temperature = inverse;
  stats.logits = logits.data();
  stats.of_tile = at_temperature.data();
  host().head_stats_of_tiles(nullptr, stats);
  stats.inverse_temperature = 1;
  stats.of_tile = at_one.data();
  host().head_stats_of_tiles(nullptr, stats);
  Sampled got{std::vector<DeviceSampledToken>(R), std::vector<int32_t>(R, 4711), std::vector<int32_t>(R, 100), {}};
  for (int64_t r = 0; r < R; ++r) got.state.push_back(key_of(r));
  for (int64_t r : greedy) got.state[r].greedy = 1;
  host().sample(nullptr, {.rows = R,
                          .vocab = V,
                          .stride = stride,
                          .tiles = tiles,
                          .inverse_temperature = inverse,
                          .run = &kRun,
                          .logits = logits.data(),
                          .of_tile = at_temperature.data(),
                          .of_tile_greedy = greedy.empty() ? nullptr : at_one.data(),
                          .state = got.state.data(),
                          .sampled = got.sampled.data(),
                          .token = got.token.data(),
                          .position = got.position.data(),
                          .top_k = config.top_k,
                          .top_p = config.top_p,
                          .min_p = config.min_p});
  return got;
}

std::string text_of(const SamplingConfig& c) {
  return str("temperature ", c.temperature, " top_k ", c.top_k, " top_p ", c.top_p, " min_p ", c.min_p);
}

void expect_near(const DeviceSampledToken& got, const SampledToken& want, const std::string& what) {
  EXPECT_NEAR(got.logprob, want.logprob, 2e-5) << what;
  EXPECT_NEAR(got.whole_logprob, want.whole_logprob, 2e-5) << what;
  EXPECT_NEAR(got.entropy, want.entropy, 5e-5) << what;
  EXPECT_NEAR(got.confidence, want.confidence, 5e-5) << what;
  EXPECT_EQ(got.logit, want.logit) << what;
}

// How many draws are another token than the sampler's.
int64_t others(const std::vector<std::vector<float>>& rows, const SamplingConfig& config, const std::string& what) {
  const Sampled got = sample(rows, config);
  Sampler sampler(config);
  int64_t count = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const SampledToken want = sampler.sample(rows[r], uniform_of(static_cast<int64_t>(r)));
    if (got.sampled[r].token != want.token) {
      ++count;
    } else {
      expect_near(got.sampled[r], want, str(what, " ", text_of(config), " row ", r));
    }
  }
  return count;
}

std::vector<std::vector<float>> random_rows(int64_t count, int64_t vocab, double scale, uint64_t stream) {
  Rng rng(43, stream);
  std::vector<std::vector<float>> rows(count);
  for (auto& row : rows) {
    for (int64_t i = 0; i < vocab; ++i) row.push_back(static_cast<float>(scale * rng.normal()));
  }
  return rows;
}

TEST(gpu_truncated_sample, a_draw_is_the_samplers_over_random_rows_and_settings) {
  int64_t draws = 0, differing = 0;
  for (const int64_t vocab : {1, 7, 58, 512, 2049, 5000}) {
    for (const double scale : {0.3, 3.0, 12.0}) {
      const auto rows = random_rows(8, vocab, scale, static_cast<uint64_t>(vocab * 10 + static_cast<int64_t>(scale)));
      for (const double temperature : {1.0, 0.6}) {
        for (const int64_t top_k : {int64_t{0}, int64_t{1}, int64_t{20}, vocab, vocab + 5}) {
          for (const double top_p : {1.0, 0.95, 0.4, 1e-6}) {
            for (const double min_p : {0.0, 0.02, 1.0}) {
              const SamplingConfig config{.temperature = temperature, .top_p = top_p, .top_k = top_k, .min_p = min_p};
              differing += others(rows, config, str("V ", vocab, " scale ", scale));
              draws += static_cast<int64_t>(rows.size());
            }
          }
        }
      }
    }
  }
  // e^x of the emulation and of the CPU's kernels differ in the last place: a uniform, or a bucket, may have an edge
  // there.
  EXPECT_GT(draws, 15000);
  EXPECT_LE(differing, draws / 2000);
}

TEST(gpu_truncated_sample, of_a_whole_vocabulary_too) {
  const auto rows = random_rows(3, 151936, 2, 5);
  int64_t differing = 0;
  for (const SamplingConfig& config :
       {SamplingConfig{.temperature = 0.7, .top_p = 0.95}, SamplingConfig{.top_k = 50},
        SamplingConfig{.top_p = 0.9, .top_k = 1000, .min_p = 0.01}, SamplingConfig{.min_p = 0.05}}) {
    differing += others(rows, config, "V 151936");
  }
  EXPECT_LE(differing, 1);
}

std::vector<float> equal(int64_t vocab, float value) { return std::vector<float>(vocab, value); }
std::vector<float> with(std::vector<float> row, const std::vector<std::pair<int64_t, float>>& values) {
  for (const auto& [column, value] : values) row[column] = value;
  return row;
}

// Every row many times over, so that every part of its distribution is met.
TEST(gpu_truncated_sample, ties_and_extremes_give_the_samplers_tokens) {
  struct Case {
    const char* what;
    std::vector<float> row;
  };
  const std::vector<Case> cases = {
      {"all equal", equal(2500, 1)},
      {"all equal and far down", equal(4099, -64)},
      {"two levels", with(equal(2500, 0), {{3, 5}, {2047, 5}, {2048, 5}, {2499, 5}})},
      {"ties on both sides of a tile", with(equal(4200, -2), {{2046, 1}, {2047, 1}, {2048, 1}, {2049, 1}, {7, 1}})},
      {"one candidate", with(equal(3000, 0), {{2900, 90}})},
      {"the rest has no probability at all", with(equal(3000, -500), {{5, 1}, {2222, 1}})},
      {"zeros of either sign", with(equal(300, -0.0f), {{4, 0.0f}, {200, 0.0f}})},
      {"powers of two, the edges of buckets",
       [] {
         std::vector<float> row;
         for (int i = 0; i < 600; ++i) row.push_back(-static_cast<float>(i % 40) * 0.6931472f);
         return row;
       }()},
      {"nearly equal",
       [] {
         std::vector<float> row;
         for (int i = 0; i < 2100; ++i) row.push_back(1 + static_cast<float>(i % 5) * 1e-4f);
         return row;
       }()},
      {"one column", {2.5f}},
  };
  constexpr int64_t kRows = 6;
  int64_t draws = 0, differing = 0;
  for (const Case& c : cases) {
    const std::vector<std::vector<float>> rows(kRows, c.row);
    for (const double temperature : {1.0, 0.01}) {
      for (const int64_t top_k : {0, 1, 3, 4, 5, 2400}) {
        for (const double top_p : {1.0, 0.5, 0.999999, 1e-6}) {
          for (const double min_p : {0.0, 0.5, 1.0}) {
            const SamplingConfig config{.temperature = temperature, .top_p = top_p, .top_k = top_k, .min_p = min_p};
            const int64_t of_case = others(rows, config, c.what);
            if (of_case > 0)
              std::printf("%s, %s: %ld others\n", c.what, text_of(config).c_str(), static_cast<long>(of_case));
            differing += of_case;
            draws += kRows;
          }
        }
      }
    }
  }
  EXPECT_LE(differing, draws / 2000);
}

TEST(gpu_truncated_sample, what_is_cut_is_never_drawn_and_the_rest_as_often_as_it_is_probable) {
  std::vector<float> row(5000, -3);
  const std::vector<int64_t> columns = {4999, 2048, 2047, 11, 3};
  for (size_t i = 0; i < columns.size(); ++i) row[columns[i]] = 4 + std::log(static_cast<float>(i + 1));
  row[700] = row[3];
  const std::vector<std::vector<float>> rows(2000, row);
  const Sampled got = sample(rows, {.top_k = 5});
  std::vector<int64_t> count(5000);
  for (const DeviceSampledToken& t : got.sampled) ++count[t.token];
  const double sum = 2 + 3 + 4 + 5 + 5;  // of 4,999 the mass is 1: not among the five
  const std::vector<double> mass = {0, 2, 3, 4, 5};
  int64_t found = count[700];
  for (size_t i = 0; i < columns.size(); ++i) {
    const double p = mass[i] / sum, mean = p * 2000;
    EXPECT_NEAR(static_cast<double>(count[columns[i]]), mean, 5 * std::sqrt(mean * (1 - p)) + 1e-9) << columns[i];
    found += count[columns[i]];
  }
  EXPECT_EQ(found, 2000);
  for (const DeviceSampledToken& t : got.sampled) {
    if (t.token != 3) continue;
    EXPECT_NEAR(t.logprob, std::log(5 / sum), 1e-5);
  }
}

TEST(gpu_truncated_sample, greedy_rows_and_rows_that_are_not_finite_are_as_without_a_cut) {
  auto rows = random_rows(8, 3000, 3, 8);
  rows[1][2900] = kInfinity;
  rows[2][0] = -kInfinity;
  rows[3][2048] = std::numeric_limits<float>::quiet_NaN();
  rows[5][7] = rows[5][2999] = rows[5][2100] = 80;
  rows[6][9] = -kInfinity;
  const SamplingConfig config{.temperature = 0.6, .top_p = 0.9, .top_k = 12};
  const Sampled got = sample(rows, config, {4, 5, 6});
  for (int64_t r : {1, 2, 3, 6}) {
    EXPECT_EQ(got.sampled[r].token, -1) << r;
    EXPECT_EQ(got.token[r], 4711) << r;
  }
  EXPECT_EQ(got.sampled[5].token, 7);
  const SampledToken want = Sampler({.temperature = 0}).sample(rows[4], 0);
  EXPECT_EQ(got.sampled[4].token, want.token);
  expect_near(got.sampled[4], want, "greedy");
  EXPECT_EQ(got.sampled[4].logprob, got.sampled[4].whole_logprob);
  for (int64_t r = 0; r < 8; ++r) {
    EXPECT_EQ(got.position[r], 101);
    EXPECT_EQ(got.state[r].sample, 18u);
    EXPECT_EQ(got.token[r], got.sampled[r].token >= 0 ? got.sampled[r].token : 4711);
  }
}

TEST(gpu_truncated_sample, a_draw_knows_nothing_of_other_rows) {
  const auto rows = random_rows(1, 2600, 2, 9), many = random_rows(6, 2600, 2, 10);
  std::vector<std::vector<float>> among = many;
  among[0] = rows[0];
  const SamplingConfig config{.temperature = 0.9, .top_p = 0.8, .min_p = 0.001};
  const Sampled alone = sample(rows, config), together = sample(among, config);
  EXPECT_EQ(alone.sampled[0].token, together.sampled[0].token);
  EXPECT_EQ(alone.sampled[0].logprob, together.sampled[0].logprob);
}

}  // namespace
}  // namespace ucas::gpu::truncated_sample_tests

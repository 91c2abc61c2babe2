// Every instruction set that this CPU runs, against the scalar body and against double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/dispatch.h"

namespace ucas::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const Table*> supported() {
  std::vector<const Table*> tables;
  for (const char* name : {"scalar", "avx2", "avx512"})
    if (const Table* table = table_of(name)) tables.push_back(table);
  return tables;
}

std::vector<float> random_floats(int64_t n, uint64_t stream, double scale = 1) {
  Rng rng(17, stream);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(scale * rng.normal());
  return values;
}

RowStats stats(const Table& table, const std::vector<float>& logits, float inverse_temperature, size_t tile) {
  RowStats result;
  for (size_t at = 0; at < logits.size(); at += tile)
    table.row_stats(logits.data() + at, static_cast<int64_t>(std::min(tile, logits.size() - at)), inverse_temperature,
                    result);
  return result;
}

struct Exact {
  double lse, entropy, confidence;
};
Exact exact(const std::vector<float>& logits, double inverse_temperature) {
  double most = -1e300, sum = 0, weighted = 0, total = 0;
  for (float x : logits) most = std::max(most, x * inverse_temperature);
  for (float x : logits) {
    double d = x * inverse_temperature - most, e = std::exp(d);
    sum += e;
    weighted += e > 0 ? e * d : 0;
    total += x * inverse_temperature;
  }
  double lse = most + std::log(sum);
  return {lse, std::log(sum) - weighted / sum, lse - total / static_cast<double>(logits.size())};
}

TEST(kernels, the_scalar_body_always_runs_and_the_chosen_one_is_supported) {
  ASSERT_FALSE(supported().empty());
  EXPECT_STREQ(supported()[0]->name, "scalar");
  EXPECT_NE(table_of(isa()), nullptr);
  EXPECT_EQ(table_of("sse9"), nullptr);
  EXPECT_GT(std::string(isa_reason()).size(), 5u);
}

TEST(kernels, an_instruction_set_can_be_forced_and_what_cannot_run_is_refused_by_name) {
  for (const char* name : {"scalar", "avx2", "avx512"}) {
    if (const Table* table = table_of(name)) {
      EXPECT_EQ(choose(name).table, table);
      EXPECT_EQ(choose(name).reason, "forced by UCAS_ISA");
      continue;
    }
    try {
      choose(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("this CPU lacks"), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(choose("neon"), Error);
  EXPECT_EQ(choose("").table, choose(nullptr).table);
}

TEST(kernels, row_statistics_agree_with_double_on_odd_sizes_and_tilings) {
  for (const Table* table : supported())
    for (int64_t n : {1, 2, 15, 16, 17, 58, 100, 1023, 1024, 1025, 5000})
      for (double scale : {0.1, 3.0, 30.0})
        for (size_t tile : {7u, 64u, 8192u}) {
          std::vector<float> logits = random_floats(n, static_cast<uint64_t>(n), scale);
          RowStats s = stats(*table, logits, 1.25f, tile);
          Exact want = exact(logits, 1.25);
          double tolerance = 4e-6 * (1 + std::abs(want.lse));
          EXPECT_NEAR(lse_of(s), want.lse, tolerance) << table->name << " n " << n << " tile " << tile;
          TokenStats token = token_stats(s, logits[0], 1.25f, n);
          EXPECT_NEAR(token.entropy, want.entropy, 1e-5 * (1 + want.entropy)) << table->name << " n " << n;
          EXPECT_NEAR(token.confidence, want.confidence, tolerance) << table->name << " n " << n;
          EXPECT_NEAR(token.logprob, logits[0] * 1.25 - want.lse, 2 * tolerance) << table->name << " n " << n;
        }
}

TEST(kernels, a_row_split_into_tiles_at_ktile_gives_what_stats_of_row_gives) {
  std::vector<float> logits = random_floats(kTile + 100, 3, 4);
  RowStats whole = stats_of_row(logits.data(), kTile + 100, 0.5f);
  RowStats tiled = stats(table(), logits, 0.5f, static_cast<size_t>(kTile));
  EXPECT_EQ(whole.sum, tiled.sum);
  EXPECT_EQ(whole.weighted, tiled.weighted);
  EXPECT_EQ(whole.total, tiled.total);
}

TEST(kernels, minus_infinity_is_a_token_without_probability) {
  for (const Table* table : supported())
    for (size_t hole : {0u, 5u, 16u, 36u}) {
      std::vector<float> logits = random_floats(37, 4, 2), rest = logits;
      logits[hole] = -kInfinity;
      rest.erase(rest.begin() + static_cast<int64_t>(hole));
      RowStats s = stats(*table, logits, 1.0f, 8192);
      Exact want = exact(rest, 1.0);
      EXPECT_NEAR(lse_of(s), want.lse, 1e-5) << table->name;
      EXPECT_NEAR(token_stats(s, logits[1], 1.0f, 37).entropy, want.entropy, 1e-5) << table->name;
      std::vector<float> gradient(37);
      table->row_gradient(logits.data(), 37, 1, {static_cast<float>(want.lse), 1.0f, 0.5f, 0.25f, 0, 1.0f, 1.0f / 37},
                          gradient.data());
      EXPECT_EQ(gradient[hole], 0.0f) << table->name;
      for (float value : gradient) EXPECT_TRUE(std::isfinite(value)) << table->name;
    }
}

TEST(kernels, nan_and_plus_infinity_are_never_hidden) {
  for (const Table* table : supported())
    for (float bad : {kNan, kInfinity})
      for (size_t place : {0u, 3u, 17u, 40u}) {
        std::vector<float> logits = random_floats(41, 5);
        logits[place] = bad;
        RowStats s = stats(*table, logits, 1.0f, 8192);
        EXPECT_FALSE(std::isfinite(token_stats(s, logits[(place + 1) % 41], 1.0f, 41).logprob)) << table->name;
        std::vector<float> row = random_floats(41, 6), weight(41, 1.0f), out(41);
        row[place] = bad;
        table->rms_norm(row.data(), weight.data(), 41, 1e-6f, out.data());
        EXPECT_FALSE(std::isfinite(out[place])) << table->name;
      }
}

TEST(kernels, extreme_logits_neither_overflow_nor_vanish) {
  for (const Table* table : supported()) {
    std::vector<float> logits{3e38f, -3e38f, 0, 1e30f, 3e38f};
    RowStats s = stats(*table, logits, 1.0f, 8192);
    EXPECT_NEAR(s.sum, 2.0, 1e-6) << table->name;
    EXPECT_NEAR(token_stats(s, 3e38f, 1.0f, 5).entropy, std::log(2.0), 1e-6) << table->name;
    std::vector<float> low(20, -1e4f);
    EXPECT_NEAR(lse_of(stats(*table, low, 1.0f, 8192)), -1e4 + std::log(20.0), 1e-3) << table->name;
  }
}

TEST(kernels, the_row_gradient_is_the_slope_of_the_statistics) {
  for (const Table* table : supported())
    for (int64_t n : {5, 16, 33}) {
      std::vector<float> logits = random_floats(n, 7, 1.5);
      float tau = 0.8f, g = 0.7f, e = -0.4f, u = 0.3f;
      Exact base = exact(logits, 0.8);
      std::vector<float> gradient(static_cast<size_t>(n));
      table->row_gradient(
          logits.data(), n, 2,
          {static_cast<float>(base.lse), static_cast<float>(base.entropy), g, e, u, tau, 1.0f / static_cast<float>(n)},
          gradient.data());
      auto loss = [&](const std::vector<float>& x) {
        Exact of = exact(x, static_cast<double>(tau));
        return static_cast<double>(g) * (static_cast<double>(x[2]) * static_cast<double>(tau) - of.lse) +
               static_cast<double>(e) * of.entropy + static_cast<double>(u) * of.confidence;
      };
      for (size_t i = 0; i < logits.size(); ++i) {
        std::vector<float> up = logits, down = logits;
        up[i] += 0x1p-7f;
        down[i] -= 0x1p-7f;
        EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / 0x1p-6, 1e-4) << table->name << " n " << n << " i " << i;
      }
    }
}

// --- rows of the transformer ----------------------------------------------------------------------------------------

TEST(kernels, norms_agree_with_double_forward_and_backward) {
  for (const Table* table : supported())
    for (int64_t n : {1, 7, 16, 60, 128, 896}) {
      std::vector<float> x = random_floats(n, 8), w = random_floats(n, 9), d = random_floats(n, 10);
      auto size = static_cast<size_t>(n);
      std::vector<float> out(size), dx(size, 0.5f), dw(size, 0.25f);
      table->rms_norm(x.data(), w.data(), n, 1e-6f, out.data());
      table->rms_norm_backward(x.data(), w.data(), d.data(), n, 1e-6f, dx.data(), dw.data());
      double square = 0, dot = 0;
      for (size_t i = 0; i < size; ++i) square += double(x[i]) * double(x[i]);
      double r = 1 / std::sqrt(square / double(n) + 1e-6);
      for (size_t i = 0; i < size; ++i) dot += double(w[i]) * double(d[i]) * double(x[i]) * r;
      for (size_t i = 0; i < size; ++i) {
        double xh = double(x[i]) * r;
        EXPECT_NEAR(out[i], double(w[i]) * xh, 1e-5) << table->name;
        EXPECT_NEAR(dx[i], 0.5 + r * (double(w[i]) * double(d[i]) - xh * dot / double(n)), 2e-5) << table->name;
        EXPECT_NEAR(dw[i], 0.25 + double(d[i]) * xh, 1e-5) << table->name;
      }
    }
}

TEST(kernels, swiglu_agrees_with_double_also_where_the_sigmoid_saturates) {
  for (const Table* table : supported())
    for (int64_t n : {1, 16, 33}) {
      auto size = static_cast<size_t>(n);
      std::vector<float> row = random_floats(2 * n, 11, 4), d = random_floats(n, 12), out(size), back(2 * size);
      row[0] = -200.0f;
      if (n > 2) row[1] = 200.0f;
      table->swiglu(row.data(), n, out.data());
      table->swiglu_backward(row.data(), d.data(), n, back.data());
      for (size_t i = 0; i < size; ++i) {
        double g = double(row[i]), up = double(row[size + i]), s = 1 / (1 + std::exp(-g));
        double tolerance = 4e-6 * (1 + std::abs(g * up));
        EXPECT_NEAR(out[i], g * s * up, tolerance) << table->name << " gate " << g;
        EXPECT_NEAR(back[i], double(d[i]) * up * s * (1 + g * (1 - s)), tolerance * 4) << table->name << " gate " << g;
        EXPECT_NEAR(back[size + i], double(d[i]) * g * s, tolerance * 4) << table->name << " gate " << g;
      }
    }
}

TEST(kernels, rotation_keeps_length_and_its_backward_undoes_it) {
  for (const Table* table : supported())
    for (int64_t d : {2, 10, 32}) {
      int64_t half = d / 2;
      std::vector<float> row = random_floats(3 * d, 13), before = row;
      std::vector<float> cos, sin;
      for (int64_t i = 0; i < half; ++i) {
        cos.push_back(std::cos(static_cast<float>(i) + 0.3f));
        sin.push_back(std::sin(static_cast<float>(i) + 0.3f));
      }
      table->rope(row.data(), cos.data(), sin.data(), 2, d);
      for (int64_t h = 0; h < 2; ++h) {
        double a = 0, b = 0;
        for (int64_t i = 0; i < d; ++i) {
          a += std::pow(double(before[static_cast<size_t>(h * d + i)]), 2);
          b += std::pow(double(row[static_cast<size_t>(h * d + i)]), 2);
        }
        EXPECT_NEAR(a, b, 1e-4) << table->name;
      }
      EXPECT_NE(row[0], before[0]);
      table->rope_backward(row.data(), cos.data(), sin.data(), 2, d);
      for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], before[i], 2e-6) << table->name;
    }
}

// --- attention ------------------------------------------------------------------------------------------------------

struct Heads {
  int64_t group, keys, d, stride, tiles;
  std::vector<float> q, k, v, d_out;  // rows of d
  std::vector<float> key_tile, value_tile, key_row, value_row;

  Heads(int64_t group_, int64_t keys_, int64_t d_, double scale)
      : group(group_), keys(keys_), d(d_), stride((d_ + 15) / 16 * 16), tiles(tiles_of(keys_)) {
    q = random_floats(group * d, 20, scale);
    k = random_floats(keys * d, 21, scale);
    v = random_floats(keys * d, 22);
    d_out = random_floats(group * d, 23);
    key_tile.assign(static_cast<size_t>(tiles * 16 * d), kNan);  // beyond the last key anything may stand
    value_tile = key_tile;
    key_row.assign(static_cast<size_t>(keys * stride), 0.0f);
    value_row = key_row;
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t c = 0; c < d; ++c) {
        auto tile = static_cast<size_t>(j / 16 * 16 * d + c * 16 + j % 16), row = static_cast<size_t>(j * stride + c);
        key_tile[tile] = key_row[row] = k[static_cast<size_t>(j * d + c)];
        value_tile[tile] = value_row[row] = v[static_cast<size_t>(j * d + c)];
      }
  }
};

struct Exactly {
  std::vector<double> out, d_q, d_k, d_v;
};
Exactly attention_in_double(const Heads& a, double scale, size_t first = 0) {
  Exactly r;
  auto G = static_cast<size_t>(a.group), T = static_cast<size_t>(a.keys), d = static_cast<size_t>(a.d);
  r.out.assign(G * d, 0);
  r.d_q = r.out;
  r.d_k.assign(T * d, 0);
  r.d_v = r.d_k;
  for (size_t h = 0; h < G; ++h) {
    std::vector<double> p(T, 0), dp(T, 0);
    double most = -1e300, sum = 0, delta = 0;
    for (size_t j = first; j < T; ++j) {
      for (size_t c = 0; c < d; ++c) p[j] += double(a.q[h * d + c]) * double(a.k[j * d + c]) * scale;
      most = std::max(most, p[j]);
    }
    for (size_t j = first; j < T; ++j) sum += p[j] = std::exp(p[j] - most);
    for (size_t j = first; j < T; ++j) {
      p[j] /= sum;
      for (size_t c = 0; c < d; ++c) {
        r.out[h * d + c] += p[j] * double(a.v[j * d + c]);
        r.d_v[j * d + c] += p[j] * double(a.d_out[h * d + c]);
        dp[j] += double(a.d_out[h * d + c]) * double(a.v[j * d + c]);
      }
      delta += p[j] * dp[j];
    }
    for (size_t j = first; j < T; ++j)
      for (size_t c = 0; c < d; ++c) {
        double ds = p[j] * (dp[j] - delta) * scale;
        r.d_q[h * d + c] += ds * double(a.k[j * d + c]);
        r.d_k[j * d + c] += ds * double(a.q[h * d + c]);
      }
  }
  return r;
}

void check_attention(const Table& table, int64_t group, int64_t keys, int64_t d, double size, int64_t first = 0) {
  Heads a(group, keys, d, size);
  float scale = 1 / std::sqrt(static_cast<float>(d));
  Exactly want = attention_in_double(a, static_cast<double>(scale), static_cast<size_t>(first));
  std::vector<float> weight(static_cast<size_t>(group * (a.tiles - first / 16) * 16)),
      out(static_cast<size_t>(group * d));
  std::vector<float> norm(static_cast<size_t>(2 * group));
  table.attend({group, keys, d, a.stride, scale, a.q.data(), a.key_tile.data(), a.value_row.data(), weight.data(),
                out.data(), norm.data(), first});
  std::string where = std::string(table.name) + " group " + std::to_string(group) + " keys " + std::to_string(keys) +
                      " d " + std::to_string(d) + " first " + std::to_string(first);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want.out[i], 1e-5 * (1 + size * size)) << where;

  std::vector<float> scratch(static_cast<size_t>(2 * group * ((a.tiles - first / 16) * 16 + a.stride)));
  std::vector<float> d_q(out.size()), d_k(static_cast<size_t>(keys * a.stride), 0.0f), d_v = d_k;
  table.attend_backward({group, keys, d, a.stride, scale, a.q.data(), out.data(), a.d_out.data(), norm.data(),
                         a.key_tile.data(), a.value_tile.data(), a.key_row.data(), scratch.data(), d_q.data(),
                         d_k.data(), d_v.data(), first});
  double tolerance = 3e-5 * (1 + size * size);
  for (size_t i = 0; i < d_q.size(); ++i) ASSERT_NEAR(d_q[i], want.d_q[i], tolerance) << where;
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t c = 0; c < d; ++c) {
      auto row = static_cast<size_t>(j * a.stride + c), plain = static_cast<size_t>(j * d + c);
      ASSERT_NEAR(d_k[row], want.d_k[plain], tolerance) << where;
      ASSERT_NEAR(d_v[row], want.d_v[plain], tolerance) << where;
    }
}

TEST(kernels, attention_agrees_with_double_forward_and_backward) {
  for (const Table* table : supported())
    for (int64_t group : {1, 2, 3, 7})
      for (int64_t keys : {1, 2, 15, 16, 17, 40, 129})
        for (int64_t d : {2, 10, 16, 32, 40, 64})
          for (double size : {1.0, 4.0}) check_attention(*table, group, keys, d, size);
}

TEST(kernels, keys_before_a_window_take_no_part_and_whole_tiles_of_them_are_never_read) {
  for (const Table* table : supported())
    for (int64_t first : {1, 15, 16, 17, 33, 48, 128})
      for (int64_t keys : {first + 1, first + 15, first + 16, first + 40})
        for (int64_t d : {10, 32})
          for (int64_t group : {1, 3}) check_attention(*table, group, keys, d, 2.0, first);
  // A row's bits are those of the same window at the start of a sequence, a whole number of tiles earlier.
  for (const Table* table : supported()) {
    Heads a(3, 50, 10, 1);
    std::vector<float> weight(static_cast<size_t>(3 * 64)), out(30), early(30);
    std::fill_n(a.key_tile.begin(), 2 * 16 * a.d, kNan);
    std::fill_n(a.value_row.begin(), 2 * 16 * a.stride, kNan);
    table->attend({3, 50, 10, a.stride, 0.5f, a.q.data(), a.key_tile.data(), a.value_row.data(), weight.data(),
                   out.data(), nullptr, 37});
    table->attend({3, 18, 10, a.stride, 0.5f, a.q.data(), a.key_tile.data() + 32 * a.d,
                   a.value_row.data() + 32 * a.stride, weight.data(), early.data(), nullptr, 5});
    EXPECT_EQ(out, early) << table->name;
  }
}

TEST(kernels, many_query_heads_may_share_one_key_head) {
  for (const Table* table : supported()) {
    Heads a(130, 9, 4, 1);
    Exactly want = attention_in_double(a, 0.5);
    std::vector<float> weight(static_cast<size_t>(130 * 16)), out(static_cast<size_t>(130 * 4));
    table->attend({130, 9, 4, a.stride, 0.5f, a.q.data(), a.key_tile.data(), a.value_row.data(), weight.data(),
                   out.data(), nullptr});
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want.out[i], 1e-5) << table->name;
  }
}

TEST(kernels, a_product_is_one_chain_of_multiply_adds_however_it_is_tiled_and_cut) {
  constexpr int64_t kRows = 30, kColumns = 80, kInner = 37;
  const std::vector<float> a = random_floats(kRows * kInner, 61), b = random_floats(kInner * kColumns, 62);
  const std::vector<float> before = random_floats(kRows * kColumns, 63);
  for (const Table* table : supported()) {
    const bool fused = table != supported()[0];
    std::vector<float> want = before;
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t n = 0; n < kColumns; ++n)
        for (int64_t k = 0; k < kInner; ++k) {
          float &sum = want[r * kColumns + n], x = a[r * kInner + k], y = b[k * kColumns + n];
          sum = fused ? std::fma(x, y, sum) : x * y + sum;
        }
    for (int64_t rows : {1, 3, 4, 7, 12, 30})
      for (int64_t columns : {16, 32, 48, 80})
        for (int64_t cut : {0, 1, 16, 36}) {
          std::vector<float> c = before;
          table->product({rows, columns, cut, a.data(), kInner, 1, b.data(), kColumns, c.data(), kColumns, true});
          table->product({rows, columns, kInner - cut, a.data() + cut, kInner, 1, b.data() + cut * kColumns, kColumns,
                          c.data(), kColumns, true});
          for (int64_t r = 0; r < kRows; ++r)
            for (int64_t n = 0; n < kColumns; ++n) {
              const float expected = r < rows && n < columns ? want[r * kColumns + n] : before[r * kColumns + n];
              ASSERT_EQ(c[r * kColumns + n], expected)
                  << table->name << " " << rows << " x " << columns << " at " << r << ", " << n;
            }
        }
  }
}

TEST(kernels, the_numbers_of_a_product_may_lie_transposed_and_begin_at_0) {
  const std::vector<float> a = random_floats(10 * 24, 64), b = random_floats(10 * 16, 65);
  for (const Table* table : supported()) {
    std::vector<float> turned(a.size()), c(24 * 16, kNan), d(24 * 16, kNan);
    for (int64_t k = 0; k < 10; ++k)
      for (int64_t r = 0; r < 24; ++r) turned[r * 10 + k] = a[k * 24 + r];
    table->product({24, 16, 10, a.data(), 1, 24, b.data(), 16, c.data(), 16, false});
    table->product({24, 16, 10, turned.data(), 10, 1, b.data(), 16, d.data(), 16, false});
    EXPECT_EQ(c, d) << table->name;
  }
}

TEST(kernels, transposing_moves_every_number_to_its_place) {
  std::vector<uint32_t> from(48 * 40);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint32_t>(i);
  for (const Table* table : supported()) {
    std::vector<uint32_t> to(32 * 50, 7);
    table->transpose_32(from.data(), 40, 48, 32, to.data(), 50);
    for (uint32_t r = 0; r < 48; ++r)
      for (uint32_t c = 0; c < 32; ++c) ASSERT_EQ(to[c * 50 + r], r * 40 + c) << table->name;
  }
}

TEST(kernels, all_instruction_sets_stay_close_to_the_scalar_body) {
  const Table* scalar = table_of("scalar");
  std::vector<float> logits = random_floats(3001, 30, 5);
  RowStats want = stats(*scalar, logits, 0.9f, 8192);
  for (const Table* table : supported()) {
    RowStats got = stats(*table, logits, 0.9f, 8192);
    EXPECT_NEAR(lse_of(got), lse_of(want), 1e-6) << table->name;
    EXPECT_NEAR(got.weighted, want.weighted, 2e-5 * std::abs(want.weighted)) << table->name;
    EXPECT_NEAR(got.total, want.total, 1e-3) << table->name;
  }
}

}  // namespace
}  // namespace ucas::kernels

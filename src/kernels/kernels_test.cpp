// Every instruction set that this CPU runs, against the scalar implementation and against double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
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

TEST(kernels, geglu_agrees_with_double_also_where_the_gate_saturates) {
  const double c = std::sqrt(2 / std::numbers::pi);
  for (const Table* table : supported())
    for (int64_t n : {1, 16, 33}) {
      auto size = static_cast<size_t>(n);
      std::vector<float> row = random_floats(2 * n, 11, 4), d = random_floats(n, 12), out(size), back(2 * size);
      row[0] = -200.0f;
      if (n > 2) row[1] = 200.0f;
      table->geglu(row.data(), n, out.data());
      table->geglu_backward(row.data(), d.data(), n, back.data());
      for (size_t i = 0; i < size; ++i) {
        const double g = double(row[i]), up = double(row[size + i]), t = std::tanh(c * (g + 0.044715 * g * g * g));
        const double gate = 0.5 * g * (1 + t);
        const double slope = 0.5 * (1 + t) + 0.5 * g * (1 - t * t) * c * (1 + 3 * 0.044715 * g * g);
        double tolerance = 4e-6 * (1 + std::abs(g * up));
        EXPECT_NEAR(out[i], gate * up, tolerance) << table->name << " gate " << g;
        EXPECT_NEAR(back[i], double(d[i]) * up * slope, tolerance * 4) << table->name << " gate " << g;
        EXPECT_NEAR(back[size + i], double(d[i]) * gate, tolerance * 4) << table->name << " gate " << g;
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
    key_tile.assign(static_cast<size_t>(tiles * 16 * d), kNan);  // beyond the last key anything may be
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

// The last `queries` tokens of `keys` together: all that the kernels say of each must be that of the token alone, whose
// numbers are held against double; what is added to keys and values is the sum.
void check_attention(const Table& table, int64_t queries, int64_t group, int64_t keys, int64_t d, double size,
                     int64_t window = 0) {
  std::vector<float> q, out, d_out, norm, d_q;
  std::vector<double> d_k(static_cast<size_t>(keys * d)), d_v = d_k;
  const Heads all(group, keys, d, size);
  const int64_t stride = all.stride, rows = queries * group;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  const double tolerance = 3e-5 * (1 + size * size);
  const std::string where =
      str(table.name, " queries ", queries, " group ", group, " keys ", keys, " d ", d, " window ", window);
  Rng rng(3, 9);
  for (int64_t n = 0; n < queries; ++n) {
    Heads one = all;
    one.keys = keys - queries + 1 + n;
    for (float& x : one.q) x *= static_cast<float>(rng.normal());
    for (float& x : one.d_out) x *= static_cast<float>(rng.normal());
    const int64_t first = first_in_sight(one.keys, window);
    const Exactly want = attention_in_double(one, static_cast<double>(scale), static_cast<size_t>(first));
    std::vector<float> weight(static_cast<size_t>(group * all.tiles * 16)), alone(static_cast<size_t>(group * stride)),
        alone_norm(static_cast<size_t>(2 * group));
    table.attend({1, group, one.keys, window, d, stride, scale, one.q.data(), all.key_tile.data(), all.value_row.data(),
                  weight.data(), alone.data(), alone_norm.data()});
    const auto append_rows = [&](const std::vector<float>& from, std::vector<float>& to) {
      for (int64_t h = 0; h < group; ++h) {
        to.insert(to.end(), from.begin() + h * d, from.begin() + (h + 1) * d);
        to.resize(to.size() + static_cast<size_t>(stride - d), 0.0f);
      }
    };
    for (int64_t h = 0; h < group; ++h)
      for (int64_t c = 0; c < d; ++c) {
        ASSERT_NEAR(alone[h * stride + c], want.out[h * d + c], 1e-5 * (1 + size * size)) << where;
      }
    q.insert(q.end(), one.q.begin(), one.q.end());
    out.insert(out.end(), alone.begin(), alone.end());
    norm.insert(norm.end(), alone_norm.begin(), alone_norm.end());
    append_rows(one.d_out, d_out);
    for (double x : want.d_q) d_q.push_back(static_cast<float>(x));
    for (size_t i = 0; i < want.d_k.size(); ++i) {
      d_k[i] += want.d_k[i];
      d_v[i] += want.d_v[i];
    }
  }
  std::vector<float> scratch(static_cast<size_t>(2 * rows * all.tiles * 16)), together(out.size()), norms(norm.size());
  table.attend({queries, group, keys - queries + 1, window, d, stride, scale, q.data(), all.key_tile.data(),
                all.value_row.data(), scratch.data(), together.data(), norms.data()});
  ASSERT_EQ(together, out) << where;
  ASSERT_EQ(norms, norm) << where;
  // The same where the first tiles lie elsewhere, and nothing where they lay.
  for (int64_t shared = 16; shared <= (keys - queries) / 16 * 16; shared += 16) {
    std::vector<float> key = all.key_tile, value = all.value_row, elsewhere(out.size()), its_norm(norm.size());
    const std::vector<float> shared_key(key.begin(), key.begin() + shared * d);
    const std::vector<float> shared_value(value.begin(), value.begin() + shared * stride);
    std::fill_n(key.begin(), shared * d, kNan);
    std::fill_n(value.begin(), shared * stride, kNan);
    table.attend({queries, group, keys - queries + 1, window, d, stride, scale, q.data(), key.data() + shared * d,
                  value.data() + shared * stride, scratch.data(), elsewhere.data(), its_norm.data(), shared,
                  shared_key.data(), shared_value.data()});
    ASSERT_EQ(elsewhere, out) << where << " shared " << shared;
    ASSERT_EQ(its_norm, norm) << where << " shared " << shared;
  }
  std::vector<float> q_rows, got_q(out.size()), got_k(static_cast<size_t>(keys * stride), 0.0f), got_v = got_k;
  for (int64_t r = 0; r < rows; ++r) {
    q_rows.insert(q_rows.end(), q.begin() + r * d, q.begin() + (r + 1) * d);
    q_rows.resize(static_cast<size_t>((r + 1) * stride), 0.0f);
  }
  table.attend_backward({queries, group, keys - queries + 1, window, d, stride, scale, q_rows.data(), out.data(),
                         d_out.data(), norm.data(), all.key_tile.data(), all.value_tile.data(), all.key_row.data(),
                         scratch.data(), got_q.data(), got_k.data(), got_v.data()});
  const double summed = tolerance * static_cast<double>(queries);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < d; ++c) ASSERT_NEAR(got_q[r * stride + c], d_q[r * d + c], 4 * tolerance) << where;
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t c = 0; c < d; ++c) {
      ASSERT_NEAR(got_k[j * stride + c], d_k[j * d + c], 4 * summed) << where;
      ASSERT_NEAR(got_v[j * stride + c], d_v[j * d + c], summed) << where;
    }
}

TEST(kernels, attention_agrees_with_double_forward_and_backward) {
  for (const Table* table : supported())
    for (int64_t group : {1, 2, 3, 7, 130})
      for (int64_t keys : {1, 2, 15, 16, 17, 40, 129})
        for (int64_t d : {2, 10, 16, 32, 40, 64})
          for (double size : {1.0, 4.0}) check_attention(*table, 1, group, keys, d, size);
}

TEST(kernels, tokens_attend_together_as_each_does_alone) {
  for (const Table* table : supported())
    for (int64_t queries : {2, 5, 16})
      for (int64_t group : {1, 2, 7})
        for (int64_t keys : {16, 32, 80})
          for (int64_t d : {10, 64})
            for (int64_t window : {0, 1, 7, 16, 40}) check_attention(*table, queries, group, keys, d, 1.0, window);
}

TEST(kernels, keys_before_a_window_take_no_part_and_whole_tiles_of_them_are_never_read) {
  for (const Table* table : supported())
    for (int64_t window : {1, 2, 15, 16, 17, 40})
      for (int64_t keys : {window + 1, window + 15, window + 16, window + 48})
        for (int64_t d : {10, 32})
          for (int64_t group : {1, 3}) check_attention(*table, 1, group, keys, d, 2.0, window);
  // A row's bits are those of the same window at the start of a sequence, a whole number of tiles earlier.
  for (const Table* table : supported()) {
    Heads a(3, 50, 10, 1);
    std::vector<float> weight(static_cast<size_t>(3 * 64)), out(3 * 16), early(3 * 16), norm(6);
    std::fill_n(a.key_tile.begin(), 2 * 16 * a.d, kNan);
    std::fill_n(a.value_row.begin(), 2 * 16 * a.stride, kNan);
    table->attend({1, 3, 50, 13, 10, a.stride, 0.5f, a.q.data(), a.key_tile.data(), a.value_row.data(), weight.data(),
                   out.data(), norm.data()});
    table->attend({1, 3, 18, 13, 10, a.stride, 0.5f, a.q.data(), a.key_tile.data() + 32 * a.d,
                   a.value_row.data() + 32 * a.stride, weight.data(), early.data(), norm.data()});
    EXPECT_EQ(out, early) << table->name;
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
          table->gemm({rows, columns, cut, a.data(), kInner, 1, b.data(), kColumns, c.data(), kColumns, true});
          table->gemm({rows, columns, kInner - cut, a.data() + cut, kInner, 1, b.data() + cut * kColumns, kColumns,
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

TEST(kernels, a_few_rows_get_the_same_chains) {
  constexpr int64_t kStride = 50;
  const std::vector<float> x = random_floats(kSmallM * kStride, 66), w = random_floats(100 * kStride, 67);
  const auto units = [](const std::vector<float>& of) { return reinterpret_cast<const uint32_t*>(of.data()); };
  for (const Table* table : supported())
    for (int64_t outputs : {1, 16, 37, 100})
      for (int64_t inner : {1, 16, 37, 50}) {
        std::vector<float> turned(inner * 16), want(112 * 16);
        for (int64_t r = 0; r < kSmallM; ++r)
          for (int64_t k = 0; k < inner; ++k) turned[k * 16 + r] = x[r * kStride + k];
        table->gemm({outputs, 16, inner, w.data(), kStride, 1, turned.data(), 16, want.data(), 16, false});
        for (int64_t rows = 1; rows <= kSmallM; ++rows) {
          std::vector<float> c(kSmallM * 101, -7);
          table->gemm_small_m({rows, outputs, inner, units(x), kStride, units(w), kStride, c.data(), 101});
          for (int64_t r = 0; r < kSmallM; ++r)
            for (int64_t o = 0; o < 101; ++o) {
              const float expected = r < rows && o < outputs ? want[o * 16 + r] : -7;
              ASSERT_EQ(c[r * 101 + o], expected) << table->name << " " << rows << " rows, " << outputs << " outputs, "
                                                  << inner << " inner, at " << r << ", " << o;
            }
        }
      }
}

TEST(kernels, pairs_of_bf16_are_chained_as_the_numbers_that_they_are) {
  constexpr int64_t kStride = 50, kPairs = kStride / 2;
  const std::vector<float> x = random_floats(kSmallM * kStride, 68), random = random_floats(40 * kStride, 69);
  for (const Table* table : supported()) {
    std::vector<Bf16> w(random.size());
    std::vector<float> wide(random.size());
    table->narrow(random.data(), static_cast<int64_t>(w.size()), w.data());
    table->widen(w.data(), static_cast<int64_t>(w.size()), wide.data());
    for (int64_t outputs : {1, 16, 40})
      for (int64_t pairs : {1, 8, 16, 19, 25})
        for (int64_t rows : {1, 7, 8, 9, 16}) {
          std::vector<float> c(kSmallM * 41, -7), want = c;
          const auto* numbers = reinterpret_cast<const uint32_t*>(x.data());
          table->gemm_small_m({rows, outputs, 2 * pairs, numbers, kStride,
                               reinterpret_cast<const uint32_t*>(wide.data()), kStride, want.data(), 41});
          table->gemm_small_m_widened({rows, outputs, pairs, numbers, kStride,
                                       reinterpret_cast<const uint32_t*>(w.data()), kPairs, c.data(), 41});
          EXPECT_EQ(c, want) << table->name << " " << rows << " rows, " << outputs << " outputs, " << pairs << " pairs";
        }
  }
}

TEST(kernels, bf16_is_widened_where_told_or_where_its_pairs_gain_nothing) {
  for (const Table* table : supported()) {
    EXPECT_FALSE(choose_bf16("widened", *table).pairs);
    EXPECT_EQ(choose_bf16("", *table).pairs, choose_bf16(nullptr, *table).pairs);
    if (table->gemm_small_m_bf16 != nullptr) continue;
    EXPECT_FALSE(choose_bf16(nullptr, *table).pairs) << table->name;
    EXPECT_THROW(choose_bf16("pairs", *table), Error);
  }
  EXPECT_THROW(choose_bf16("tiles", table()), Error);
}

TEST(kernels, the_numbers_of_a_product_may_lie_transposed_and_begin_at_0) {
  const std::vector<float> a = random_floats(10 * 24, 64), b = random_floats(10 * 16, 65);
  for (const Table* table : supported()) {
    std::vector<float> turned(a.size()), c(24 * 16, kNan), d(24 * 16, kNan);
    for (int64_t k = 0; k < 10; ++k)
      for (int64_t r = 0; r < 24; ++r) turned[r * 10 + k] = a[k * 24 + r];
    table->gemm({24, 16, 10, a.data(), 1, 24, b.data(), 16, c.data(), 16, false});
    table->gemm({24, 16, 10, turned.data(), 10, 1, b.data(), 16, d.data(), 16, false});
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

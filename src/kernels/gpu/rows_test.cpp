// CPU emulation of the bodies over rows, against the CPU kernels row by row, and against differences in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "kernels/gpu/kernels.h"
#include "kernels/kernels.h"
#include "support/gpu_emulation.h"

namespace ucas::gpu::rows_tests {  // a folder's tests are compiled together
namespace {

constexpr float kEps = 1e-6f;
constexpr double kOfBf16 = 1.0 / 256, kOfFloat = 2e-5;  // relative
const std::vector<int64_t> kWidths = {8, 24, 40, 896, 1000};

bool same(float a, float b) { return as_bits(a) == as_bits(b); }
bool same(Bf16 a, Bf16 b) { return a.bits == b.bits; }
double number(float x) { return x; }
double number(Bf16 x) { return widen(x); }

// What a call may write, between margins that it must not. Until it is written it holds a NaN that nothing computes.
template <class T>
class Output {
 public:
  explicit Output(int64_t n) : Output(std::vector<T>(n, poison())) {}
  explicit Output(const std::vector<T>& initial) : all_(kMargin, poison()) {
    all_.insert(all_.end(), initial.begin(), initial.end());
    all_.insert(all_.end(), kMargin, poison());
  }
  T* data() { return all_.data() + kMargin; }
  const T& operator[](int64_t i) const { return all_[kMargin + i]; }
  int64_t size() const { return static_cast<int64_t>(all_.size()) - 2 * kMargin; }
  bool is_written(int64_t i) const { return !same((*this)[i], poison()); }
  int64_t written() const {
    int64_t count = 0;
    for (int64_t i = 0; i < size(); ++i) count += is_written(i);
    return count;
  }
  bool in_bounds() const {
    for (int64_t i = 0; i < kMargin; ++i)
      if (is_written(i - kMargin) || is_written(size() + i)) return false;
    return true;
  }
  std::vector<T> values() const { return {all_.begin() + kMargin, all_.end() - kMargin}; }

 private:
  static constexpr int64_t kMargin = 16;
  static T poison() {
    if constexpr (std::is_same_v<T, float>)
      return as_float(0x7fadbeef);
    else
      return {0x7fad};
  }
  std::vector<T> all_;
};

std::vector<float> random_floats(int64_t n, uint64_t stream, double scale = 1) {
  Rng rng(23, stream);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(scale * rng.normal());
  return values;
}
std::vector<float> random_weight(int64_t n, uint64_t stream) {
  std::vector<float> values = random_floats(n, stream, 0.2);
  for (float& value : values) value += 1;
  return values;
}
std::vector<Bf16> narrowed(const std::vector<float>& values) {
  std::vector<Bf16> result;
  for (float value : values) result.push_back(narrow(value));
  return result;
}
std::vector<float> widened(const std::vector<Bf16>& values) {
  std::vector<float> result;
  for (Bf16 value : values) result.push_back(widen(value));
  return result;
}
std::vector<Bf16> random_narrow(int64_t n, uint64_t stream, double scale = 1) {
  return narrowed(random_floats(n, stream, scale));
}

// All written, nothing next to it, and each number near.
template <class T, class Want>
void expect_near(const Output<T>& got, const std::vector<Want>& want, double relative, double absolute,
                 const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(want.size())) << what;
  EXPECT_TRUE(got.in_bounds()) << what;
  EXPECT_EQ(got.written(), got.size()) << what;
  for (int64_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(number(got[i]), want[i], absolute + relative * std::abs(want[i])) << what << " at " << i;
}
template <class T>
void expect_same(const Output<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(want.size())) << what;
  EXPECT_TRUE(got.in_bounds()) << what;
  for (int64_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same(got[i], want[i])) << what << " at " << i;
}

// d f / d x[i] for all i, f in double.
std::vector<double> differences(std::vector<double> x, const std::function<double(const std::vector<double>&)>& f) {
  constexpr double kStep = 1e-5;
  std::vector<double> result;
  for (double& value : x) {
    const double kept = value;
    value = kept + kStep;
    const double above = f(x);
    value = kept - kStep;
    result.push_back((above - f(x)) / (2 * kStep));
    value = kept;
  }
  return result;
}
std::vector<double> normed(const std::vector<double>& x, const std::vector<float>& w) {
  double squares = 0;
  for (double value : x) squares += value * value;
  std::vector<double> result;
  for (size_t i = 0; i < x.size(); ++i)
    result.push_back(w[i] * x[i] / std::sqrt(squares / static_cast<double>(x.size()) + kEps));
  return result;
}

// --- embed ----------------------------------------------------------------------------------------------------------

TEST(gpu_rows, embed_widens_the_rows_of_its_tokens) {
  for (int64_t width : kWidths) {
    const std::vector<Bf16> table = random_narrow(7 * width, 1);
    const std::vector<int32_t> token = {6, 0, 3, 3};
    Output<float> x(4 * width);
    host().embed(nullptr, {4, width, token.data(), table.data(), x.data()});
    std::vector<float> want;
    for (int32_t id : token)
      for (int64_t i = 0; i < width; ++i) want.push_back(widen(table[id * width + i]));
    expect_same(x, want, str("width ", width));
  }
}

TEST(gpu_rows, a_token_that_could_not_be_drawn_reads_nothing_outside_the_table) {
  const std::vector<Bf16> table = random_narrow(16, 1);
  const int32_t token = -1;
  Output<float> x(8);
  host().embed(nullptr, {1, 8, &token, table.data(), x.data()});
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(x[i], widen(table[i]));
}

// --- norms ----------------------------------------------------------------------------------------------------------

void check_add_norm(int64_t rows, int64_t width, bool with_y, bool in_place) {
  const std::string what = str("rows ", rows, " width ", width, " y ", with_y, " in place ", in_place);
  const std::vector<float> x = random_floats(rows * width, 1), w = random_weight(width, 2);
  const std::vector<Bf16> y = random_narrow(rows * width, 3);
  std::vector<float> sums = x, want(rows * width);
  for (size_t i = 0; with_y && i < sums.size(); ++i) sums[i] += widen(y[i]);
  for (int64_t r = 0; r < rows; ++r)
    kernels::table().rms_norm(sums.data() + r * width, w.data(), width, kEps, want.data() + r * width);

  Output<float> sum = in_place ? Output<float>(x) : Output<float>(rows * width), out_float(rows * width);
  Output<Bf16> out(rows * width);
  AddNorm a = {.rows = rows, .width = width, .eps = kEps, .x = in_place ? sum.data() : x.data()};
  a.y = with_y ? y.data() : nullptr;
  a.w = w.data();
  a.sum = sum.data();
  a.out = out.data();
  a.out_float = out_float.data();
  host().add_norm(nullptr, a);
  expect_near(out_float, want, kOfFloat, 0, what);
  expect_same(out, narrowed(out_float.values()), what);
  if (with_y || in_place)
    expect_same(sum, sums, what);
  else
    EXPECT_EQ(sum.written(), 0) << what;
}

TEST(gpu_rows, add_norm_agrees_with_the_cpu) {
  for (int64_t rows : {1, 3})
    for (int64_t width : kWidths)
      for (bool with_y : {false, true})
        for (bool in_place : {false, true}) check_add_norm(rows, width, with_y, in_place);
  check_add_norm(1, 8192, true, true);  // lanes go round more than once
}

TEST(gpu_rows, add_norm_writes_only_the_output_that_is_wanted) {
  const std::vector<float> x = random_floats(48, 1), w = random_weight(24, 2);
  for (bool wants_float : {false, true}) {
    Output<Bf16> out(48);
    Output<float> out_float(48);
    AddNorm a = {.rows = 2, .width = 24, .eps = kEps, .x = x.data(), .w = w.data()};
    if (wants_float)
      a.out_float = out_float.data();
    else
      a.out = out.data();
    host().add_norm(nullptr, a);
    EXPECT_EQ(out_float.written(), wants_float ? 48 : 0);
    EXPECT_EQ(out.written(), wants_float ? 0 : 48);
  }
}

TEST(gpu_rows, what_is_not_finite_shows_in_its_row_alone) {
  std::vector<float> x = random_floats(72, 1);
  x[30] = std::numeric_limits<float>::infinity();
  const std::vector<float> w = random_weight(24, 2);
  Output<Bf16> out(72);
  host().add_norm(nullptr, {.rows = 3, .width = 24, .eps = kEps, .x = x.data(), .w = w.data(), .out = out.data()});
  EXPECT_TRUE(std::isnan(widen(out[30])));
  for (int64_t i : {0, 23, 48, 71}) EXPECT_TRUE(std::isfinite(widen(out[i]))) << i;
}

void check_norm_backward(int64_t rows, int64_t width, bool narrow_in, bool narrow_out, bool with_dw) {
  const std::string what = str("rows ", rows, " width ", width, " bf16 in ", narrow_in, " out ", narrow_out);
  const int64_t n = rows * width, parts = norm_parts(rows);
  const std::vector<float> x = random_floats(n, 1), w = random_weight(width, 2), before = random_floats(n, 4);
  const std::vector<Bf16> d_narrow = random_narrow(n, 3);
  const std::vector<float> d = widened(d_narrow);
  std::vector<float> want = before, want_dw(parts * width);
  for (int64_t r = 0; r < rows; ++r)
    kernels::table().rms_norm_backward(x.data() + r * width, w.data(), d.data() + r * width, width, kEps,
                                       want.data() + r * width, want_dw.data() + r / kRowsOfPart * width);

  Output<float> dx(before), dw(parts * width);
  Output<Bf16> dx_narrow(n);
  NormBackward a = {.rows = rows, .width = width, .eps = kEps, .x = x.data(), .w = w.data()};
  if (narrow_in)
    a.d_out = d_narrow.data();
  else
    a.d_out_float = d.data();
  a.dx = dx.data();
  a.dx_narrow = narrow_out ? dx_narrow.data() : nullptr;
  a.dw = with_dw ? dw.data() : nullptr;
  host().norm_backward(nullptr, a);
  expect_near(dx, want, kOfFloat, kOfFloat, what);
  if (narrow_out) expect_same(dx_narrow, narrowed(dx.values()), what);
  if (with_dw) expect_near(dw, want_dw, kOfFloat, kOfFloat, what);
  EXPECT_EQ(dx_narrow.written(), narrow_out ? n : 0) << what;
  EXPECT_EQ(dw.written(), with_dw ? parts * width : 0) << what;
}

TEST(gpu_rows, norm_backward_agrees_with_the_cpu) {
  for (int64_t width : kWidths)
    for (int64_t rows : {1, 4, 18})
      for (bool with_dw : {false, true}) check_norm_backward(rows, width, with_dw, !with_dw, with_dw);
  check_norm_backward(35, 24, false, false, true);
  check_norm_backward(35, 24, true, true, true);
  check_norm_backward(2, 8192, true, true, true);
}

TEST(gpu_rows, norm_backward_is_the_derivative) {
  const std::vector<float> x = random_floats(24, 1), w = random_weight(24, 2), d_out = random_floats(24, 3);
  Output<float> dx(std::vector<float>(24, 0.0f));
  host().norm_backward(nullptr, {.rows = 1,
                                 .width = 24,
                                 .eps = kEps,
                                 .x = x.data(),
                                 .w = w.data(),
                                 .d_out_float = d_out.data(),
                                 .dx = dx.data()});
  const auto loss = [&](const std::vector<double>& at) {
    double sum = 0;
    const std::vector<double> out = normed(at, w);
    for (size_t i = 0; i < 24; ++i) sum += out[i] * d_out[i];
    return sum;
  };
  expect_near(dx, differences({x.begin(), x.end()}, loss), 1e-5, 1e-5, "differences");
}

// --- heads ----------------------------------------------------------------------------------------------------------

struct Heads {
  int64_t H, K, d;
  bool bias = false, norm = false, cache = false, unnormed = false;
  int64_t N() const { return (H + 2 * K) * d; }
  std::string name() const {
    return str("H ", H, " K ", K, " d ", d, " bias ", bias, " norm ", norm, " cache ", cache, " unnormed ", unnormed);
  }
};

// Angles of some positions; others are NaN.
struct Angles {
  std::vector<float> cosines, sines;
  Angles(const std::vector<int32_t>& positions, int64_t d) {
    const int64_t last = *std::max_element(positions.begin(), positions.end()), half = d / 2;
    cosines.assign((last + 1) * half, std::numeric_limits<float>::quiet_NaN());
    sines = cosines;
    for (int64_t position : positions)
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * std::pow(1e4, -2.0 * static_cast<double>(i) / d);
        cosines[position * half + i] = static_cast<float>(std::cos(angle));
        sines[position * half + i] = static_cast<float>(std::sin(angle));
      }
  }
};

constexpr int64_t kBlocksOfSlot = 20, kSlots = 3;
// Block numbers in no order, each once.
std::vector<int32_t> block_table() {
  std::vector<int32_t> table;
  for (int64_t i = 0; i < kSlots * kBlocksOfSlot; ++i) table.push_back(static_cast<int32_t>(i * 23 % 60));
  return table;
}

// One call of apply_rope_and_store_kv and what it must have done.
struct Placing {
  Heads heads;
  std::vector<int32_t> position, slot, table = block_table();
  std::vector<Bf16> qkv;
  std::vector<float> bias, q_norm, k_norm;
  Angles angles;
  Output<Bf16> placed, unnormed, cache;
  int64_t stride;  // of blocks: with something of other layers in between

  Placing(const Heads& h, std::vector<int32_t> positions, std::vector<int32_t> slots)
      : heads(h),
        position(std::move(positions)),
        slot(std::move(slots)),
        qkv(random_narrow(rows() * h.N(), 1)),
        bias(random_floats(h.N(), 2, 0.5)),
        q_norm(random_weight(h.d, 3)),
        k_norm(random_weight(h.d, 4)),
        angles(position, h.d),
        placed(qkv),
        unnormed(rows() * (h.H + h.K) * h.d),
        cache(h.cache ? kSlots * kBlocksOfSlot * (block_numbers(h.K, h.d) + 16) : 0),
        stride(block_numbers(h.K, h.d) + 16) {}
  int64_t rows() const { return static_cast<int64_t>(position.size()); }

  RopeAndStoreKv arguments() {
    RopeAndStoreKv a = {.rows = rows(), .H = heads.H, .K = heads.K, .d = heads.d, .eps = kEps, .qkv = placed.data()};
    if (heads.bias) a.bias = bias.data();
    if (heads.norm) a.q_norm = q_norm.data(), a.k_norm = k_norm.data();
    a.cosines = angles.cosines.data();
    a.sines = angles.sines.data();
    a.position = position.data();
    if (heads.unnormed) a.unnormed = unnormed.data();
    if (heads.cache) {
      a.slot = slot.data();
      a.cache = {cache.data(), stride, table.data(), kBlocksOfSlot};
    }
    return a;
  }

  void run_and_check() {
    host().apply_rope_and_store_kv(nullptr, arguments());
    std::vector<float> want;
    std::vector<Bf16> want_unnormed;
    for (int64_t r = 0; r < rows(); ++r) append_row(r, want, want_unnormed);
    expect_near(placed, want, kOfBf16, 1e-6, heads.name());
    if (heads.unnormed)
      expect_same(unnormed, want_unnormed, heads.name());
    else
      EXPECT_EQ(unnormed.written(), 0);
    EXPECT_TRUE(cache.in_bounds());
    if (heads.cache) check_cache();
  }

 private:
  void append_row(int64_t r, std::vector<float>& want, std::vector<Bf16>& want_unnormed) const {
    const auto [H, K, d] = std::tuple(heads.H, heads.K, heads.d);
    std::vector<float> row = widened({qkv.begin() + r * heads.N(), qkv.begin() + (r + 1) * heads.N()});
    for (int64_t i = 0; heads.bias && i < heads.N(); ++i) row[i] += bias[i];
    for (int64_t i = 0; i < (H + K) * d; ++i) {
      want_unnormed.push_back(narrow(row[i]));
      if (heads.norm) row[i] = widen(narrow(row[i]));
    }
    for (int64_t h = 0; heads.norm && h < H + K; ++h)
      kernels::table().rms_norm(row.data() + h * d, (h < H ? q_norm : k_norm).data(), d, kEps, row.data() + h * d);
    const int64_t at = position[r] * (d / 2);
    kernels::table().rope(row.data(), angles.cosines.data() + at, angles.sines.data() + at, H + K, d);
    want.insert(want.end(), row.begin(), row.end());
  }

  void check_cache() const {
    const auto [H, K, d] = std::tuple(heads.H, heads.K, heads.d);
    std::set<int64_t> expected;
    for (int64_t r = 0; r < rows(); ++r) {
      const int64_t token = position[r] % 256;
      const int64_t block = table[slot[r] * kBlocksOfSlot + position[r] / 256] * stride;
      for (int64_t k = 0; k < K; ++k)
        for (int64_t i = 0; i < d; ++i) {
          const int64_t key = block + k * 256 * d + i / 8 * 256 * 8 + token * 8 + i % 8;
          const int64_t value = block + (K + k) * 256 * d + token * d + i;
          ASSERT_TRUE(same(cache[key], placed[r * heads.N() + (H + k) * d + i])) << heads.name() << " key " << i;
          ASSERT_TRUE(same(cache[value], placed[r * heads.N() + (H + K + k) * d + i])) << heads.name();
          expected.insert({key, value});
        }
    }
    EXPECT_EQ(cache.written(), static_cast<int64_t>(expected.size())) << heads.name();
  }
};

TEST(gpu_rows, heads_are_placed_with_and_without_each_part) {
  for (int parts = 0; parts < 16; ++parts)
    Placing({3, 1, 16, (parts & 1) != 0, (parts & 2) != 0, (parts & 4) != 0, (parts & 8) != 0}, {0, 5, 700}, {0, 1, 2})
        .run_and_check();
}

TEST(gpu_rows, heads_of_every_width_are_placed) {
  for (int64_t d : {8, 24, 32, 64, 80, 128, 256})
    for (bool norm : {false, true}) Placing({7, 2, d, true, norm, false, true}, {3, 0, 41}, {}).run_and_check();
  Placing({1, 1, 16, true, true, false, true}, {9}, {}).run_and_check();
}

TEST(gpu_rows, keys_and_values_go_to_the_blocks_of_their_slots) {
  Placing({4, 2, 16, true, false, true, false}, {0, 255, 256, 700, 4999, 255, 256}, {0, 0, 0, 2, 1, 1, 2})
      .run_and_check();
  Placing({2, 2, 32, false, true, true, true}, {700, 701, 511, 512}, {1, 1, 0, 2}).run_and_check();
}

TEST(gpu_rows, a_norm_of_keys_alone_leaves_queries_unnormed) {
  Placing normed({2, 1, 16, false, true}, {5}, {}), plain({2, 1, 16}, {5}, {});
  RopeAndStoreKv a = normed.arguments();
  a.q_norm = nullptr;
  host().apply_rope_and_store_kv(nullptr, a);
  host().apply_rope_and_store_kv(nullptr, plain.arguments());
  for (int64_t i = 0; i < 48; ++i) {
    if (i < 32)
      EXPECT_TRUE(same(normed.placed[i], plain.placed[i])) << i;
    else
      EXPECT_FALSE(same(normed.placed[i], plain.placed[i])) << i;
  }
}

void check_heads_backward(const Heads& heads, const std::vector<int32_t>& position) {
  const auto [H, K, d] = std::tuple(heads.H, heads.K, heads.d);
  const auto rows = static_cast<int64_t>(position.size());
  const std::vector<Bf16> d_q = random_narrow(rows * H * d, 1), d_k = random_narrow(rows * K * d, 2);
  const std::vector<Bf16> d_v = random_narrow(rows * K * d, 3), unnormed = random_narrow(rows * (H + K) * d, 4);
  const std::vector<float> q_norm = random_weight(d, 5), k_norm = random_weight(d, 6);
  const Angles angles(position, d);

  std::vector<float> want, want_dw(rows * 2 * d);
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<float> row;
    for (const auto& [part, count] : {std::pair(&d_q, H), std::pair(&d_k, K), std::pair(&d_v, K)})
      for (int64_t i = 0; i < count * d; ++i) row.push_back(widen((*part)[r * count * d + i]));
    const int64_t at = position[r] * (d / 2);
    kernels::table().rope_backward(row.data(), angles.cosines.data() + at, angles.sines.data() + at, H + K, d);
    for (int64_t h = 0; heads.norm && h < H + K; ++h) {
      const auto x = unnormed.begin() + (r * (H + K) + h) * d;
      std::vector<float> dx(d);
      kernels::table().rms_norm_backward(widened({x, x + d}).data(), (h < H ? q_norm : k_norm).data(),
                                         row.data() + h * d, d, kEps, dx.data(),
                                         want_dw.data() + (r * 2 + (h < H ? 0 : 1)) * d);
      std::copy(dx.begin(), dx.end(), row.begin() + h * d);
    }
    want.insert(want.end(), row.begin(), row.end());
  }

  Output<Bf16> d_qkv(rows * heads.N());
  Output<float> dw(rows * 2 * d);
  RopeAndStoreKvBackward a = {.rows = rows, .H = H, .K = K, .d = d, .eps = kEps};
  a.d_q = d_q.data(), a.d_k = d_k.data(), a.d_v = d_v.data();
  if (heads.norm) {
    a.q_norm = q_norm.data(), a.k_norm = k_norm.data();
    a.unnormed = unnormed.data();
    a.dw = heads.unnormed ? dw.data() : nullptr;
  }
  a.cosines = angles.cosines.data(), a.sines = angles.sines.data();
  a.position = position.data();
  a.d_qkv = d_qkv.data();
  host().apply_rope_and_store_kv_backward(nullptr, a);
  expect_near(d_qkv, want, kOfBf16, 1e-5, heads.name());
  if (a.dw != nullptr)
    expect_near(dw, want_dw, kOfFloat, kOfFloat, heads.name());
  else
    EXPECT_EQ(dw.written(), 0) << heads.name();
}

TEST(gpu_rows, the_backward_of_placing_agrees_with_the_cpu) {
  for (int64_t d : {8, 16, 24, 64, 80, 128, 256}) {
    check_heads_backward({7, 2, d}, {3, 700});
    check_heads_backward({7, 2, d, false, true}, {3, 700});
    check_heads_backward({7, 2, d, false, true, false, true}, {3, 700});
  }
  check_heads_backward({40, 8, 64, false, true, false, true}, {4999});  // more heads than lanes at once
  check_heads_backward({1, 1, 16, false, true, false, true}, {0});
}

TEST(gpu_rows, the_backward_of_placing_is_the_derivative) {
  constexpr int64_t d = 16;
  const std::vector<int32_t> position = {7};
  const Angles angles(position, d);
  const std::vector<Bf16> x = random_narrow(2 * d, 1), d_q = random_narrow(d, 2), d_k = random_narrow(d, 3);
  const std::vector<float> q_norm = random_weight(d, 4), k_norm = random_weight(d, 5);
  Output<Bf16> d_qkv(3 * d);
  RopeAndStoreKvBackward a = {.rows = 1, .H = 1, .K = 1, .d = d, .eps = kEps};
  a.d_q = d_q.data(), a.d_k = a.d_v = d_k.data();
  a.q_norm = q_norm.data(), a.k_norm = k_norm.data();
  a.unnormed = x.data();
  a.cosines = angles.cosines.data(), a.sines = angles.sines.data();
  a.position = position.data();
  a.d_qkv = d_qkv.data();
  host().apply_rope_and_store_kv_backward(nullptr, a);

  const auto loss_of = [&](const std::vector<float>& w, const std::vector<Bf16>& d_out) {
    return [&](const std::vector<double>& head) {
      const std::vector<double> out = normed(head, w);
      double sum = 0;
      for (size_t i = 0; i < d / 2; ++i) {
        const double cosine = angles.cosines[7 * d / 2 + i], sine = angles.sines[7 * d / 2 + i];
        sum += (out[i] * cosine - out[i + d / 2] * sine) * widen(d_out[i]);
        sum += (out[i + d / 2] * cosine + out[i] * sine) * widen(d_out[i + d / 2]);
      }
      return sum;
    };
  };
  const std::vector<float> wide = widened(x);
  std::vector<double> want = differences({wide.begin(), wide.begin() + d}, loss_of(q_norm, d_q));
  const std::vector<double> of_k = differences({wide.begin() + d, wide.end()}, loss_of(k_norm, d_k));
  want.insert(want.end(), of_k.begin(), of_k.end());
  for (Bf16 value : d_k) want.push_back(widen(value));
  expect_near(d_qkv, want, kOfBf16, 1e-4, "differences");
}

// --- SwiGLU ---------------------------------------------------------------------------------------------------------

TEST(gpu_rows, swiglu_and_its_backward_agree_with_the_cpu) {
  for (int64_t width : kWidths)
    for (int64_t rows : {1, 3}) {
      const std::string what = str("rows ", rows, " width ", width);
      const std::vector<Bf16> gate_up = random_narrow(rows * 2 * width, 1, 3), d_out = random_narrow(rows * width, 2);
      const std::vector<float> wide = widened(gate_up), d = widened(d_out);
      std::vector<float> want(rows * width), want_d(rows * 2 * width);
      for (int64_t r = 0; r < rows; ++r) {
        kernels::table().swiglu(wide.data() + r * 2 * width, width, want.data() + r * width);
        kernels::table().swiglu_backward(wide.data() + r * 2 * width, d.data() + r * width, width,
                                         want_d.data() + r * 2 * width);
      }
      Output<Bf16> out(rows * width), d_gate_up(rows * 2 * width), in_place(gate_up);
      host().swiglu(nullptr, {rows, width, gate_up.data(), out.data()});
      expect_near(out, want, kOfBf16, 1e-6, what);
      host().swiglu_backward(nullptr, {rows, width, gate_up.data(), d_out.data(), d_gate_up.data(), nullptr});
      expect_near(d_gate_up, want_d, kOfBf16, 1e-6, what);
      Output<Bf16> again(rows * width);
      host().swiglu_backward(nullptr, {rows, width, in_place.data(), d_out.data(), in_place.data(), again.data()});
      expect_same(in_place, d_gate_up.values(), what);
      expect_same(again, out.values(), what);
    }
}

// A launch narrows the size of its grid to 32 bits. Sizes are 64 bits wide, so that more would be fewer without a word.
TEST(gpu_rows, more_thread_blocks_than_a_launch_takes_are_refused) {
  EXPECT_NO_THROW(check_grid("swiglu", kMostBlocks));
  const std::vector<Grid> larger = {{kMostBlocks.x + 1, 1, 1}, {1, kMostBlocks.y + 1, 1}, {1, 1, kMostBlocks.z + 1}};
  for (const Grid& grid : larger) EXPECT_THROW(check_grid("swiglu", grid), Error);
  EXPECT_THROW(host().embed(nullptr, {.rows = 1, .width = 512 * 65536}), Error);
}

TEST(gpu_rows, swiglu_of_large_gates_is_finite_and_nan_is_not_hidden) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Bf16> gate_up = narrowed({-1e30f, -200, -90, 0, 90, 200, 1e30f, nan, 1, 1, 1, 1, 1, 1, 1, 1});
  const std::vector<Bf16> d_out = narrowed({1, 1, 1, 1, 1, 1, 1, 1});
  Output<Bf16> out(8), d_gate_up(16);
  host().swiglu(nullptr, {1, 8, gate_up.data(), out.data()});
  host().swiglu_backward(nullptr, {1, 8, gate_up.data(), d_out.data(), d_gate_up.data(), nullptr});
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(std::isfinite(widen(out[i])), i < 7) << i;
    EXPECT_EQ(std::isfinite(widen(d_gate_up[i])), i < 7) << i;
    EXPECT_EQ(std::isfinite(widen(d_gate_up[8 + i])), i < 7) << i;
  }
  EXPECT_EQ(widen(out[0]), 0);
  EXPECT_EQ(widen(out[5]), 200);
}

// --- sums of parts ---------------------------------------------------------------------------------------------------

TEST(gpu_rows, parts_are_added_to_what_was_there) {
  for (int64_t width : kWidths)
    for (int64_t parts : {0, 1, 255, 300, 5000}) {
      if (parts * width > 400000) continue;
      const std::string what = str("parts ", parts, " width ", width);
      const int64_t stride = width + 8;  // as where something else lies between
      const std::vector<float> part = random_floats(parts * stride, 1), before = random_floats(width, 2);
      const std::vector<Bf16> part_narrow = narrowed(part);
      std::vector<double> want(before.begin(), before.end()), want_narrow(width);
      for (int64_t p = 0; p < parts; ++p)
        for (int64_t i = 0; i < width; ++i) {
          want[i] += part[p * stride + i];
          want_narrow[i] += widen(part_narrow[p * stride + i]);
        }
      Output<float> sum(before), sum_narrow(width);
      host().add_parts(nullptr, {parts, width, stride, part.data(), nullptr, sum.data(), sum.data()});
      host().add_parts(nullptr, {parts, width, stride, nullptr, part_narrow.data(), nullptr, sum_narrow.data()});
      expect_near(sum, want, 1e-6, 1e-4, what);
      expect_near(sum_narrow, want_narrow, 1e-6, 1e-4, what);
    }
}

TEST(gpu_rows, no_rows_are_nothing_to_do) {
  host().embed(nullptr, {.rows = 0, .width = 8});
  host().add_norm(nullptr, {.rows = 0, .width = 8});
  host().norm_backward(nullptr, {.rows = 0, .width = 8});
  host().apply_rope_and_store_kv(nullptr, {.rows = 0, .H = 2, .K = 1, .d = 16});
  host().apply_rope_and_store_kv_backward(nullptr, {.rows = 0, .H = 2, .K = 1, .d = 16});
  host().swiglu(nullptr, {.rows = 0, .width = 8});
  host().swiglu_backward(nullptr, {.rows = 0, .width = 8});
}

}  // namespace
}  // namespace ucas::gpu::rows_tests

// CPU emulation of the optimizer's loops, against train/optimizer/adamw.cpp's equations and sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/str.h"
#include "kernels/gpu/kernels.h"
#include "support/gpu_emulation.h"

namespace ucas::gpu::update_tests {  // a folder's tests are compiled together
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kMargin = 8;  // numbers after the last one, which no call may touch
constexpr float kUntouched = 4711;
constexpr float kClip = 0.5f, kKeep = 0.999f, kBeta1 = 0.9f, kBeta2 = 0.99f, kStepSize = 1e-2f, kRoot = 0.3f,
                kEps = 1e-8f;

std::vector<float> random_floats(int64_t n, uint64_t stream, double scale = 1) {
  Rng rng(29, stream);
  std::vector<float> values(static_cast<size_t>(n + kMargin), kUntouched);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(scale * rng.normal());
  return values;
}

struct Moments {
  std::vector<float> p, g, m, v;
  int32_t nonfinite = 0;

  explicit Moments(int64_t n)
      : p(random_floats(n, 1)),
        g(random_floats(n, 2, 0.1)),
        m(random_floats(n, 3, 0.01)),
        v(random_floats(n, 4, 1e-4)) {
    for (int64_t i = 0; i < n; ++i) v[i] = std::abs(v[i]);
  }
  void update(int64_t n) {
    host().adamw(nullptr, {.n = n,
                           .clip = kClip,
                           .keep = kKeep,
                           .beta1 = kBeta1,
                           .beta2 = kBeta2,
                           .step_size = kStepSize,
                           .root_correction = kRoot,
                           .eps = kEps,
                           .p = p.data(),
                           .g = g.data(),
                           .m = m.data(),
                           .v = v.data(),
                           .nonfinite = &nonfinite});
  }
};

// Sums are as exact as their terms.
void expect_near(float got, double want, double term, const std::string& what) {
  EXPECT_NEAR(got, want, 3e-7 * (std::abs(want) + term)) << what;
}

TEST(gpu_update, adamw_is_its_equations_for_any_number_of_elements) {
  for (int64_t n : {1, 3, 4, 5, 1023, 1024, 1030, 2500}) {
    const Moments before(n);
    Moments after(n);
    after.update(n);
    EXPECT_EQ(after.nonfinite, 0);
    for (int64_t i = 0; i < n; ++i) {
      const std::string what = str("n ", n, " at ", i);
      const double g = kClip * before.g[i];
      const double m = kBeta1 * before.m[i] + (1 - kBeta1) * g, v = kBeta2 * before.v[i] + (1 - kBeta2) * g * g;
      expect_near(after.m[i], m, std::abs(g), what);
      expect_near(after.v[i], v, 0, what);
      const double step = kStepSize * (m / (std::sqrt(v) / kRoot + kEps));
      expect_near(after.p[i], before.p[i] * kKeep - step, std::abs(step), what);
      EXPECT_EQ(after.g[i], 0) << what;
    }
    for (int64_t i = n; i < n + kMargin; ++i)
      for (const auto* values : {&after.p, &after.g, &after.m, &after.v}) EXPECT_EQ((*values)[i], kUntouched) << n;
  }
}

TEST(gpu_update, adamw_gives_the_same_bits_wherever_an_element_lies) {
  Moments whole(11), cut(11);
  whole.update(11);
  for (int64_t n : {11, 7, 3}) {  // its first elements are fours, its last ones single
    cut = Moments(11);
    cut.update(n);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(as_bits(cut.p[i]), as_bits(whole.p[i])) << n << " at " << i;
  }
}

TEST(gpu_update, adamw_tells_what_is_not_finite) {
  constexpr int64_t n = 1030;
  for (int64_t place : {0, 3, 700, 1028, 1029})
    for (float bad : {kNan, kInfinity, -kInfinity})
      for (auto where : {&Moments::p, &Moments::g, &Moments::m, &Moments::v}) {
        Moments moments(n);
        (moments.*where)[place] = bad;
        moments.update(n);
        EXPECT_EQ(moments.nonfinite, 1) << place << " " << bad;
        EXPECT_EQ(moments.g[place], 0);
        for (int64_t i = 0; i < n; ++i) EXPECT_TRUE(i == place || std::isfinite(moments.p[i])) << i;
      }
  Moments negative(n);
  negative.v[700] = -1;
  negative.update(n);
  EXPECT_EQ(negative.nonfinite, 1);
}

TEST(gpu_update, adamw_leaves_an_earlier_finding) {
  Moments moments(5);
  moments.nonfinite = 1;
  moments.update(5);
  EXPECT_EQ(moments.nonfinite, 1);
}

TEST(gpu_update, sums_of_squares_are_those_of_chunks) {
  for (int64_t n : {int64_t{1}, int64_t{6}, int64_t{1024}, int64_t{33000}, kSquaresChunk - 1, kSquaresChunk,
                    kSquaresChunk + 1, 2 * kSquaresChunk + 4099}) {
    const std::vector<float> x = random_floats(n, 1);
    const int64_t chunks = (n + kSquaresChunk - 1) / kSquaresChunk;
    std::vector<double> part(chunks + 1, -1);
    host().sum_of_squares(nullptr, {n, x.data(), part.data()});
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      double want = 0;
      for (int64_t i = chunk * kSquaresChunk; i < std::min(n, (chunk + 1) * kSquaresChunk); ++i)
        want += static_cast<double>(x[i]) * x[i];
      EXPECT_NEAR(part[chunk], want, 1e-12 * want) << "n " << n << " chunk " << chunk;
    }
    EXPECT_EQ(part[chunks], -1) << n;
  }
}

TEST(gpu_update, squares_beyond_f32_are_summed_and_nan_is_not_hidden) {
  double part = 0;
  std::vector<float> x(1001, 1e30f);
  host().sum_of_squares(nullptr, {1001, x.data(), &part});
  EXPECT_NEAR(part / 1001e60, 1, 1e-6);
  x[1000] = kNan;
  host().sum_of_squares(nullptr, {1001, x.data(), &part});
  EXPECT_TRUE(std::isnan(part));
}

TEST(gpu_update, no_elements_are_nothing_to_do) {
  host().adamw(nullptr, {.n = 0});
  host().sum_of_squares(nullptr, {.n = 0});
}

}  // namespace
}  // namespace ucas::gpu::update_tests

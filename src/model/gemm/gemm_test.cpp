// GEMMs against double, and the promise of f32: every number is one chain in a fixed order.
#include "model/gemm/gemm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/str.h"
#include "support/engine/threads.h"

namespace ucas {
namespace {

struct Sizes {
  int64_t P, I, O;
};
constexpr Sizes kSizes[] = {{16, 64, 48},  {16, 2, 1},     {48, 60, 33},   {64, 896, 70},
                            {80, 1024, 7}, {112, 384, 96}, {336, 90, 100}, {1040, 70, 2100}};

at::Tensor random(int64_t rows, int64_t columns, uint64_t stream, at::ScalarType type) {
  at::Tensor x = at::empty({rows, columns}, at::kFloat);
  Rng rng(5, stream);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = static_cast<float>(rng.normal());
  return x.to(type);
}

// How far `got` is from `want`, as a share of what its terms add up to.
void expect_near(const at::Tensor& got, const at::Tensor& want, const at::Tensor& scale, double bound,
                 const std::string& what) {
  EXPECT_LT(((got.to(at::kDouble) - want).abs() / (scale + 1)).max().item<double>(), bound) << what;
}

bool equal(const at::Tensor& a, const at::Tensor& b) { return a.equal(b); }

class Products : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(Products, all_three_agree_with_double) {
  const bool wide = GetParam() == at::kFloat;
  for (const auto& [P, I, O] : kSizes) {
    const std::string what = str("P ", P, ", I ", I, ", O ", O);
    const at::Tensor x = random(P, I, 1, GetParam()), w = random(O, I, 2, GetParam()), d = random(P, O, 3, GetParam());
    const at::Tensor dx = x.to(at::kDouble), dw = w.to(at::kDouble), dd = d.to(at::kDouble);
    at::Tensor out = at::empty({P, O}, at::kFloat), onto = random(P, O, 4, at::kFloat);
    const at::Tensor want = at::mm(dx, dw.t()), sizes = at::mm(dx.abs(), dw.abs().t());
    gemm(x, w, out);
    expect_near(out, want, sizes, 1e-6, what);
    gemm(x, w, out, onto);
    expect_near(out, want + onto.to(at::kDouble), sizes + 4, 1e-6, what);
    at::Tensor d_x = at::empty({P, I}, GetParam());
    const at::Tensor want_x = at::mm(dd, dw), sizes_x = at::mm(dd.abs(), dw.abs());
    gemm_input_gradient(d, w, d_x);
    expect_near(d_x, want_x, sizes_x, wide ? 1e-6 : 4e-3, what);
    const at::Tensor once = d_x.to(at::kDouble);
    gemm_input_gradient(d, w, d_x, Into::sum);
    expect_near(d_x, want_x + once, sizes_x + once.abs(), wide ? 1e-6 : 8e-3, what);
    at::Tensor f32 = random(P, I, 5, at::kFloat);
    const at::Tensor d_before = f32.to(at::kDouble);
    gemm_input_gradient(d, w, f32, Into::sum);
    expect_near(f32, want_x + d_before, sizes_x + 4, 1e-6, what);
    at::Tensor sum = random(O, I, 6, at::kFloat);
    const at::Tensor before = sum.to(at::kDouble);
    gemm_weight_gradient(d, x, sum);
    expect_near(sum, before + at::mm(dd.t(), dx), at::mm(dd.t().abs(), dx.abs()) + 4, 1e-6, what);
  }
}

TEST_P(Products, a_row_of_the_first_has_the_same_bits_in_any_company_and_with_any_threads) {
  for (const auto& [P, I, O] : kSizes) {
    const at::Tensor x = random(P, I, 1, GetParam()), w = random(O, I, 2, GetParam());
    at::Tensor all = at::empty({P, O}, at::kFloat), some = at::empty({16, O}, at::kFloat);
    {
      testing::Threads one(1);
      gemm(x, w, all);
    }
    testing::Threads two(2);
    for (int64_t first = 0; first + 16 <= P; first += 16) {
      gemm(x.narrow(0, first, 16), w, some);
      EXPECT_TRUE(equal(some, all.narrow(0, first, 16))) << "P " << P << ", I " << I << ", O " << O << ", " << first;
    }
  }
}

TEST_P(Products, a_few_rows_have_the_bits_of_many) {
  for (const auto& [P, I, O] :
       {Sizes{16, 64, 48}, {16, 2, 1}, {16, 60, 33}, {16, 61, 70}, {16, 896, 150}, {16, 4864, 70}}) {
    const at::Tensor x = random(P, I, 1, GetParam()), w = random(O, I + I % 2, 2, GetParam()).narrow(1, 0, I);
    const at::Tensor before = random(P, O, 3, GetParam());
    at::Tensor many = at::empty({4 * P, O}, at::kFloat), onto = at::empty({4 * P, O}, GetParam());
    const at::Tensor repeated = x.repeat({4, 1}), twice = before.repeat({4, 1});
    gemm(repeated, w, many);
    gemm(repeated, w, onto, twice);
    testing::Threads two(2);
    for (int64_t rows = 1; rows <= P; ++rows) {
      const int64_t given = gemm_rows(rows, GetParam());
      EXPECT_TRUE(given == rows || given == P) << rows;
      at::Tensor some = at::empty({given, O}, at::kFloat), some_onto = at::empty({given, O}, GetParam());
      gemm(x.narrow(0, 0, given), w, some);
      gemm(x.narrow(0, 0, given), w, some_onto, before.narrow(0, 0, given));
      EXPECT_TRUE(equal(some, many.narrow(0, 0, given))) << rows << " rows, I " << I << ", O " << O;
      EXPECT_TRUE(equal(some_onto, onto.narrow(0, 0, given))) << rows << " rows, I " << I << ", O " << O;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, Products, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "f32" : "bf16"; });

TEST(products, gradients_in_f32_have_the_same_bits_however_rows_are_cut_and_with_any_threads) {
  for (const auto& [P, I, O] : kSizes) {
    const at::Tensor x = random(P, I, 1, at::kFloat), w = random(O, I, 2, at::kFloat), d = random(P, O, 3, at::kFloat);
    at::Tensor d_x = at::empty({P, I}, at::kFloat), sum = at::zeros({O, I});
    {
      testing::Threads one(1);
      gemm_input_gradient(d, w, d_x);
      gemm_weight_gradient(d, x, sum);
    }
    testing::Threads two(2);
    at::Tensor part = at::empty({16, I}, at::kFloat), parts = at::zeros({O, I});
    for (int64_t first = 0; first + 16 <= P; first += 16) {
      const at::Tensor rows = d.narrow(0, first, 16);
      gemm_input_gradient(rows, w, part);
      EXPECT_TRUE(equal(part, d_x.narrow(0, first, 16))) << "P " << P << ", I " << I << ", O " << O << ", " << first;
      gemm_weight_gradient(rows, x.narrow(0, first, 16), parts);
    }
    EXPECT_TRUE(equal(parts, sum)) << "P " << P << ", I " << I << ", O " << O;
  }
}

}  // namespace
}  // namespace ucas

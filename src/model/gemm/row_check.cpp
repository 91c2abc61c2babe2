#include "model/gemm/row_check.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "base/rng.h"
#include "model/gemm/gemm.h"

namespace ucas {

namespace {

at::Tensor random_rows(int64_t rows, int64_t columns, at::ScalarType type) {
  at::Tensor x = at::empty({rows, columns}, at::kFloat);
  Rng rng(896, static_cast<uint64_t>(rows));
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = static_cast<float>(rng.normal());
  return x.to(type);
}

bool rows_are_alone(at::ScalarType type) {
  constexpr int64_t kRows = 256, kWidth = 896, kOutputs = 640;
  const int threads = at::get_num_threads();
  const at::Tensor x = random_rows(kRows, kWidth, type), w = random_rows(kOutputs, kWidth, type);
  at::Tensor all = at::empty({kRows, kOutputs}, at::kFloat), some = at::empty({16, kOutputs}, at::kFloat);
  gemm(x, w, all);
  at::set_num_threads(1);
  bool equal = true;
  for (int64_t first = 0; first < kRows; first += 16) {
    gemm(x.narrow(0, first, 16), w, some);
    equal = equal && some.equal(all.narrow(0, first, 16));
  }
  for (int64_t rows : {1, 3, 8, 13}) {
    const int64_t given = gemm_rows(rows, type);
    at::Tensor few = at::empty({given, kOutputs}, at::kFloat);
    gemm(x.narrow(0, 0, given), w, few);
    equal = equal && few.equal(all.narrow(0, 0, given));
  }
  at::set_num_threads(threads);
  return equal;
}

}  // namespace

std::string check_rows() {
  const bool f32 = rows_are_alone(at::kFloat), bf16 = rows_are_alone(at::kBFloat16);
  if (f32 && bf16) return "equal bits in f32 and bf16: sampler and trainer agree";
  const char* where = f32 ? "bf16" : bf16 ? "f32" : "f32 and bf16";
  return std::string("a row of a product depends on the others in ") + where +
         ": sampler and trainer will differ in the last bits; please report this machine";
}

}  // namespace ucas

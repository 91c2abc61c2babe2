// AdamW with moments of 16 and 8 bits as a GPU's kernel does it, emulated on the CPU, against the CPU's own loops: the
// same bits of weights, codes and scales, update after update.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/str.h"
#include "train/optimizer/update_rules.h"

namespace ucas {
namespace {

at::Tensor flat(std::vector<float> values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat).clone();
}

ParameterState state_of(int64_t n, MomentType type) {
  Rng rng(5, 1);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(rng.normal()));
  ParameterState slot{.name = "w", .index = 3, .parameter = flat(values), .mean = {}, .square = {}};
  slot.mean = make_moment(slot.parameter, type, false);
  slot.square = make_moment(slot.parameter, type, true);
  return slot;
}

// Of very different size; whole blocks of nothing, of the smallest numbers there are, and one that dwarfs its block.
std::vector<float> gradient_of_update(int64_t n, uint64_t update) {
  Rng rng(6, update);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    const double size = std::pow(10.0, -9 * rng.uniform()) * rng.normal();
    const int64_t block = i / kQuantBlock;
    values.push_back(block == 1                 ? 0.0f
                     : block == 2               ? 1e-40f
                     : block == 3 && i % 7 == 0 ? -0.0f
                     : i == 5 * kQuantBlock     ? 1e6f
                                                : static_cast<float>(size));
  }
  return values;
}

void expect_same_bytes(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.defined(), b.defined()) << what;
  if (!a.defined()) return;
  ASSERT_EQ(a.nbytes(), b.nbytes()) << what;
  EXPECT_EQ(std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()), 0) << what;
}

TEST(gpu_adamw_packed, gives_the_bits_of_the_cpus_loops) {
  const at::NoGradGuard no_grad;
  const OptimizerConfig config;
  for (const MomentType type : {MomentType::bf16, MomentType::int8}) {
    for (const int64_t n : {kQuantizedFrom, kQuantizedFrom + 1, int64_t{3 * kMomentChunk + 258}}) {
      ParameterState here = state_of(n, type), there = state_of(n, type);
      for (int64_t update = 1; update <= 6; ++update) {
        const std::string what = str(names(type)[static_cast<size_t>(type)], " n ", n, " update ", update);
        for (ParameterState* slot : {&here, &there})
          slot->parameter.mutable_grad() = flat(gradient_of_update(n, static_cast<uint64_t>(update)));
        int32_t spoilt = 0;
        EXPECT_TRUE(adamw_on_cpu(here, {config, update, 1e-3, 0.7, 0.01, nullptr})) << what;
        EXPECT_TRUE(adamw_on_gpu(there, {config, update, 1e-3, 0.7, 0.01, &spoilt})) << what;
        EXPECT_EQ(spoilt, 0) << what;
        expect_same_bytes(here.parameter, there.parameter, what + " weights");
        expect_same_bytes(here.parameter.grad(), there.parameter.grad(), what + " gradients");
        expect_same_bytes(here.mean.values, there.mean.values, what + " means");
        expect_same_bytes(here.square.values, there.square.values, what + " squares");
        expect_same_bytes(here.mean.scales, there.mean.scales, what + " scales of means");
        expect_same_bytes(here.square.scales, there.square.scales, what + " scales of squares");
      }
    }
  }
}

TEST(gpu_adamw_packed, tells_what_cannot_be_kept_as_a_finite_number) {
  const at::NoGradGuard no_grad;
  const OptimizerConfig config;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const MomentType type : {MomentType::bf16, MomentType::int8}) {
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 1e30f}) {  // 1e60: no f32
      for (const int64_t at : {int64_t{0}, int64_t{777}, kQuantizedFrom}) {
        ParameterState slot = state_of(kQuantizedFrom + 1, type);
        std::vector<float> gradient(kQuantizedFrom + 1, 1e-3f);
        gradient[static_cast<size_t>(at)] = bad;
        slot.parameter.mutable_grad() = flat(gradient);
        int32_t spoilt = 0;
        EXPECT_TRUE(adamw_on_gpu(slot, {config, 1, 1e-3, 1.0, 0.0, &spoilt}));
        EXPECT_EQ(spoilt, 1) << names(type)[static_cast<size_t>(type)] << " " << bad << " at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace ucas

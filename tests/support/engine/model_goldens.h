// tests/goldens/model as several tests read it; tools/make_model_goldens.py wrote it.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/topk.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/file.h"
#include "base/text/json.h"
#include "hf/safetensors.h"
#include "model/model.h"

namespace ucas::testing {

inline std::string golden(const std::string& name) {
  return std::string(UCAS_SOURCE_DIR) + "/tests/goldens/model/" + name;
}

inline std::map<std::string, at::Tensor> read_all(const std::string& path) {
  std::map<std::string, at::Tensor> tensors;
  for (const StoredTensor& stored : read_safetensors_header(path)) {
    at::Tensor tensor = at::empty(stored.shape, at::kFloat);
    read_as_f32(stored, tensor.data_ptr<float>());
    tensors[stored.name] = tensor;
  }
  return tensors;
}

inline Packed sequence_of(const std::string& directory) {
  Packed packed;
  packed.append(read_json(directory + "/ids.json", 1 << 20)["ids"].get<std::vector<int32_t>>());
  return packed;
}

// The last rows, as many as `want` has.
inline at::Tensor logits_of(Model& model, const Packed& packed, const at::Tensor& want) {
  const at::Tensor logits = model.head().logits(model.hidden(packed)).cpu();
  return logits.narrow(0, logits.size(0) - want.size(0), want.size(0));
}

inline double most_apart(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

// How far a logit in bf16 may be from f32, as a share of the largest f32 logit: a number is rounded to 8 bits (by at
// most 2^-9 of it) a dozen times in every block, and the large random weights of the goldens, whose attention is sharp,
// make more of that. Measured: at most 0.071, the mean of a golden 0.0060; of transformers' and peft's own bf16 0.088
// and 0.0068.
inline constexpr double kBf16Bound = 0.08;
inline constexpr double kBf16Mean = 0.007;

// How far logits are from those of f32, and how often the likeliest token is another one although the two largest f32
// logits are more than `bound` apart.
struct Departure {
  double bound = 0;  // kBf16Bound times the largest
  double largest = 0, mean = 0;
  int64_t clear = 0, wrong = 0;  // rows
};

inline Departure departure(const at::Tensor& got, const at::Tensor& want) {
  const double bound = kBf16Bound * want.abs().max().item<double>();
  const at::Tensor difference = (got - want).abs();
  const at::Tensor top = std::get<0>(at::topk(want, 2, 1));
  const at::Tensor clear = (top.select(1, 0) - top.select(1, 1)) > bound;
  const at::Tensor wrong = clear.logical_and(got.argmax(1).ne(want.argmax(1)));
  return {bound, difference.max().item<double>(), difference.mean().item<double>(), clear.sum().item<int64_t>(),
          wrong.sum().item<int64_t>()};
}

// Of a golden in bf16, whose mean difference from f32 must be at most `share` of that of transformers' or peft's own
// bf16; the clear rows.
inline int64_t expect_near_f32(Model& model, const std::string& name, const char* path, double share) {
  const at::Tensor want = read_all(golden(name) + "/expected.safetensors").at("logits");
  const Departure ours = departure(logits_of(model, sequence_of(golden(name)), want), want);
  const Departure theirs = departure(read_all(golden("bf16_logits.safetensors")).at(name), want);
  const double largest = ours.bound / kBf16Bound;
  std::printf("%-16s %-6s bf16, over the largest logit: max %.4f (theirs %.4f), mean %.4f (%.4f); %ld clear rows\n",
              name.c_str(), path, ours.largest / largest, theirs.largest / largest, ours.mean / largest,
              theirs.mean / largest, static_cast<long>(ours.clear));
  EXPECT_LE(ours.largest, ours.bound) << name;
  EXPECT_LE(ours.mean, kBf16Mean * largest) << name;
  EXPECT_LE(ours.mean, share * theirs.mean) << name << " " << path;
  EXPECT_EQ(ours.wrong, 0) << name;
  return ours.clear;
}

}  // namespace ucas::testing

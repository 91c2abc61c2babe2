// Logits and gradients against transformers, from checkpoints that it saved (tools/make_model_goldens.py).
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "hf/safetensors.h"
#include "model/transformer.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

std::string golden(const std::string& name) { return std::string(UCAS_SOURCE_DIR) + "/tests/goldens/model/" + name; }

std::map<std::string, at::Tensor> read_all(const std::string& path) {
  std::map<std::string, at::Tensor> tensors;
  for (const StoredTensor& stored : read_safetensors_header(path)) {
    at::Tensor tensor = at::empty(stored.shape, at::kFloat);
    read_as_f32(stored, tensor.data_ptr<float>());
    tensors[stored.name] = tensor;
  }
  return tensors;
}

Packed sequence_of(const std::string& directory) {
  Packed packed;
  packed.token = read_json(directory + "/ids.json", 1 << 20)["ids"].get<std::vector<int32_t>>();
  for (size_t i = 0; i < packed.token.size(); ++i) packed.position.push_back(static_cast<int32_t>(i));
  packed.begin = {0, static_cast<int64_t>(packed.token.size())};
  return packed;
}

void expect_parity(Model& model, const std::string& directory, const std::string& name) {
  Packed packed = sequence_of(directory);
  at::Tensor want = read_all(directory + "/expected.safetensors")["logits"];
  at::Tensor got = model.head().logits(model.hidden(packed));
  got = got.narrow(0, got.size(0) - want.size(0), want.size(0));
  double difference = (got - want).abs().max().item<double>();
  std::printf("%-12s max |logit difference| %.2e, largest logit %.1f\n", name.c_str(), difference,
              want.abs().max().item<double>());
  EXPECT_LE(difference, 2e-4) << name;
  EXPECT_TRUE(got.argmax(1).equal(want.argmax(1))) << name;
}

constexpr const char* kCases[] = {"gqa_tied",
                                  "mha_untied",
                                  "sharded",
                                  "bf16",
                                  "f16",
                                  "head_dim",
                                  "long",
                                  "qwen3",
                                  "qwen3_untied",
                                  "llama",
                                  "llama_tied",
                                  "mistral",
                                  "mistral_full",
                                  "qwen2_window",
                                  "qwen3_window",
                                  "llama3",
                                  "yarn",
                                  "yarn_mscale",
                                  "yarn_attention",
                                  "linear",
                                  "dynamic",
                                  "r1_distill_qwen",
                                  "r1_distill_llama"};

TEST(parity, logits_equal_those_of_transformers_on_both_paths) {
  c10::NoGradGuard no_grad;
  for (const char* name : kCases) {
    auto model = load_model(golden(name), at::kCPU);
    expect_parity(*model, golden(name), name);
    expect_parity(*aten_view(*model), golden(name), std::string(name) + "/ATen");
  }
}

TEST(parity, what_is_saved_loads_again_with_the_same_bits) {
  c10::NoGradGuard no_grad;
  for (const char* name : kCases) {
    testing::TemporaryDirectory scratch;
    auto model = load_model(golden(name), at::kCPU);
    save_model(*model, scratch.path(), golden(name), 20'000);
    auto again = load_model(scratch.path(), at::kCPU);
    auto before = model->parameters(), after = again->parameters();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].tensor.equal(after[i].tensor)) << before[i].name;
    EXPECT_EQ(again->config().eos_token_id, model->config().eos_token_id);
    EXPECT_EQ(again->config().torch_dtype, model->config().torch_dtype);
    expect_parity(*again, golden(name), std::string(name) + "/saved");
  }
}

void expect_gradients(Model& model, const std::string& name) {
  std::string directory = golden(name);
  Packed packed = sequence_of(directory);
  auto rows = static_cast<int64_t>(packed.token.size()) - 1;
  std::vector<int32_t> target(packed.token.begin() + 1, packed.token.end());
  at::Tensor hidden = model.hidden(packed).narrow(0, 0, rows);
  (-model.head().stats(hidden, target, 1.0).logprob.mean()).backward();
  auto want = read_all(directory + "/expected.safetensors");
  double worst = 0;
  for (const NamedTensor& parameter : model.parameters()) {
    at::Tensor expected = want.at("grad." + parameter.name);
    double scale = expected.abs().max().item<double>();
    double difference = (parameter.tensor.grad() - expected).abs().max().item<double>();
    worst = std::max(worst, difference / scale);
    EXPECT_LE(difference, 2e-4 * scale) << name << " " << parameter.name;
    parameter.tensor.mutable_grad().reset();
  }
  std::printf("%-12s largest gradient difference, relative to the tensor's largest: %.2e\n", name.c_str(), worst);
}

TEST(parity, gradients_equal_those_of_transformers_on_both_paths) {
  for (const char* name : {"gqa_tied", "qwen3", "llama", "mistral", "qwen2_window", "llama3", "yarn"}) {
    auto model = load_model(golden(name), at::kCPU);
    expect_gradients(*model, name);
    expect_gradients(*aten_view(*model), name);
  }
}

}  // namespace
}  // namespace ucas

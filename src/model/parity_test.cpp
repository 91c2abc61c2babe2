// Logits and gradients against transformers, from checkpoints that it saved (tools/make_model_goldens.py).
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/engine/emulation.h"
#include "support/engine/model_goldens.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

using testing::Departure;
using testing::departure;
using testing::expect_near_f32;
using testing::golden;
using testing::logits_of;
using testing::most_apart;
using testing::read_all;
using testing::sequence_of;

void expect_parity(Model& model, const std::string& directory, const std::string& name) {
  Packed packed = sequence_of(directory);
  at::Tensor want = read_all(directory + "/expected.safetensors")["logits"];
  at::Tensor got = logits_of(model, packed, want);
  double difference = most_apart(got, want);
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
                                  "r1_distill_llama",
                                  "gemma3",
                                  "gemma3_published",
                                  "smollm3",
                                  "smollm3_published",
                                  "granite",
                                  "granite_published",
                                  "olmo2",
                                  "olmo2_published",
                                  "olmo3",
                                  "gemma3_inside",
                                  "qwen2_5_vl_inside"};

TEST(parity, logits_equal_those_of_transformers_on_both_paths) {
  c10::NoGradGuard no_grad;
  for (const char* name : kCases) {
    auto model = load_model(golden(name), at::kCPU);
    expect_parity(*model, golden(name), name);
    expect_parity(*aten_view(*model), golden(name), std::string(name) + "/ATen");
  }
}

TEST(parity, logits_in_bf16_are_no_further_from_f32_than_those_of_transformers_on_both_paths) {
  c10::NoGradGuard no_grad;
  int64_t clear = 0;
  for (const char* name : kCases) {
    auto model = load_model(golden(name), at::kCPU, inference(Dtype::bf16));
    clear += expect_near_f32(*model, name, "native", 1.0);
    expect_near_f32(*aten_view(*model), name, "ATen", 1.1);
  }
  EXPECT_GT(clear, 200) << "rows where the likeliest token must be the same";
}

// Of one directory by tools/check_against_transformers.py --families --dtype bfloat16: weights in bf16, sequences of
// several lengths, the logits of transformers in f32 and in bf16. Its lines of "departure" are that tool's.
TEST(parity, bf16_of_a_given_case_is_no_further_from_f32_than_transformers_own) {
  const char* given = std::getenv("UCAS_BF16_CASE");
  if (given == nullptr) GTEST_SKIP() << "tools/check_against_transformers.py --families --dtype bfloat16 runs it";
  c10::NoGradGuard no_grad;
  const std::string directory = given;
  auto model = load_model(directory, at::kCPU, inference(Dtype::bf16));
  auto logits = read_all(directory + "/logits.safetensors");
  const Json sequences = read_json(directory + "/ids.json", 1 << 20)["sequences"];
  ASSERT_FALSE(sequences.empty());
  for (const Json& ids : sequences) {
    Packed packed;
    packed.append(ids.get<std::vector<int32_t>>());
    const std::string length = std::to_string(packed.token.size());
    const at::Tensor want = logits.at("f32." + length), theirs = logits.at("bf16." + length);
    const Departure o = departure(logits_of(*model, packed, want), want), t = departure(theirs, want);
    std::printf("departure %s %.6f %.6f %.6f %.6f %.6f %ld %ld %ld\n", length.c_str(), o.largest, o.mean, t.largest,
                t.mean, o.bound, static_cast<long>(o.clear), static_cast<long>(o.wrong), static_cast<long>(t.wrong));
    EXPECT_LE(o.mean, t.mean) << length;
    EXPECT_LE(o.largest, 1.5 * o.bound) << length << ": the largest of up to two million";
    EXPECT_EQ(o.wrong, 0) << length;
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
  for (const char* name : {"gqa_tied", "qwen3", "llama", "mistral", "qwen2_window", "llama3", "yarn", "gemma3",
                           "smollm3", "granite", "olmo2", "olmo3", "gemma3_inside"}) {
    auto model = load_model(golden(name), at::kCPU);
    expect_gradients(*model, name);
    expect_gradients(*aten_view(*model), name);
  }
}

// From the first ids on, with a cache, the likeliest token each time.
void expect_greedy(Model& model, const std::string& name) {
  const Json json = read_json(golden(name) + "/ids.json", 1 << 20);
  const auto want = json["greedy"].get<std::vector<int32_t>>();
  const size_t begun = json["ids"].size() / 2;
  std::vector<int32_t> got(want.begin(), want.begin() + static_cast<int64_t>(begun));
  Packed prompt;
  prompt.append(got);
  const auto cache = model.make_cache(1, static_cast<int64_t>(want.size()));
  const int64_t slot = 0;
  at::Tensor hidden = model.prefill(prompt, *cache, {&slot, 1});
  while (true) {
    const at::Tensor logits = model.head().logits(hidden.narrow(0, hidden.size(0) - 1, 1));
    got.push_back(static_cast<int32_t>(logits.argmax().item<int64_t>()));
    if (got.size() == want.size()) break;
    const auto position = static_cast<int32_t>(got.size() - 1);
    hidden = model.decode({&got.back(), 1}, {&position, 1}, {&slot, 1}, *cache);
  }
  EXPECT_EQ(got, want) << name;
}

TEST(parity, greedy_decoding_gives_the_tokens_of_transformers_on_both_paths) {
  c10::NoGradGuard no_grad;
  for (const char* name : {"gemma3", "gemma3_published", "smollm3", "smollm3_published", "granite", "granite_published",
                           "olmo2", "olmo2_published", "olmo3", "gemma3_inside", "qwen2_5_vl_inside"}) {
    auto model = load_model(golden(name), at::kCPU);
    expect_greedy(*model, name);
    expect_greedy(*aten_view(*model), name);
  }
}

}  // namespace
}  // namespace ucas

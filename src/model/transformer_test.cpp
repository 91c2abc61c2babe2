#include "model/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/rng.h"

namespace ucas {
namespace {

ModelConfig tiny_config() {
  ModelConfig c;
  c.hidden_size = 32;
  c.num_hidden_layers = 2;
  c.num_attention_heads = 4;
  c.num_key_value_heads = 2;
  c.head_dim = 8;
  c.intermediate_size = 40;
  c.vocab_size = 50;
  return c;
}

Packed random_packed(const std::vector<int64_t>& lengths, int64_t vocab, uint64_t seed) {
  Rng rng(seed, 0);
  Packed packed;
  packed.begin.push_back(0);
  for (int64_t length : lengths) {
    for (int64_t i = 0; i < length; ++i) {
      packed.token.push_back(static_cast<int32_t>(rng.below(vocab)));
      packed.position.push_back(static_cast<int32_t>(i));
    }
    packed.begin.push_back(static_cast<int64_t>(packed.token.size()));
  }
  return packed;
}

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

TEST(transformer, decoding_token_by_token_gives_the_hidden_states_of_the_whole_sequence) {
  auto model = make_model(tiny_config(), 7, at::kCPU);
  Packed packed = random_packed({5, 19, 1}, 50, 3);
  c10::NoGradGuard no_grad;
  at::Tensor whole = model->hidden(packed);
  auto cache = model->make_cache(4, 32);
  for (size_t s = 0; s < 3; ++s)
    for (int64_t row = packed.begin[s]; row < packed.begin[s + 1]; ++row) {
      int32_t token = packed.token[static_cast<size_t>(row)], position = packed.position[static_cast<size_t>(row)];
      auto slot = static_cast<int64_t>(s + 1);
      at::Tensor one = model->decode({&token, 1}, {&position, 1}, {&slot, 1}, *cache);
      EXPECT_LT(max_difference(one[0], whole[row]), 1e-5) << "row " << row;
    }
}

TEST(transformer, a_prefilled_prompt_continues_from_a_copied_slot) {
  auto model = make_model(tiny_config(), 7, at::kCPU);
  Packed packed = random_packed({9}, 50, 4), prompt = packed;
  prompt.token.pop_back();
  prompt.position.pop_back();
  prompt.begin.back() = 8;
  c10::NoGradGuard no_grad;
  at::Tensor whole = model->hidden(packed);
  auto cache = model->make_cache(3, 16);
  int64_t slot = 0;
  EXPECT_LT(max_difference(model->prefill(prompt, *cache, {&slot, 1}), whole.narrow(0, 0, 8)), 1e-5);
  cache->copy(0, 2, 8);
  slot = 2;
  int32_t position = 8;
  at::Tensor last = model->decode({&packed.token[8], 1}, {&position, 1}, {&slot, 1}, *cache);
  EXPECT_LT(max_difference(last[0], whole[8]), 1e-5);
}

TEST(transformer, neighbours_in_the_packing_do_not_change_a_sequence) {
  auto model = make_model(tiny_config(), 7, at::kCPU);
  Packed both = random_packed({6, 11}, 50, 5), second;
  second.token.assign(both.token.begin() + 6, both.token.end());
  second.position.assign(both.position.begin() + 6, both.position.end());
  second.begin = {0, 11};
  c10::NoGradGuard no_grad;
  EXPECT_LT(max_difference(model->hidden(both).narrow(0, 6, 11), model->hidden(second)), 1e-5);
}

TEST(transformer, the_gradient_of_a_parameter_is_the_slope_of_the_loss) {
  ModelConfig config = tiny_config();
  auto model = make_model(config, 7, at::kCPU);
  Packed packed = random_packed({7, 18}, 50, 6);
  std::vector<int32_t> target;
  for (size_t i = 0; i < packed.token.size(); ++i) target.push_back(static_cast<int32_t>((i * 13) % 50));
  auto loss = [&] {
    HeadStats stats = model->head().stats(model->hidden(packed), target, 0.8);
    return (stats.logprob + stats.entropy * 0.3 + stats.confidence * 0.2).sum();
  };
  loss().backward();
  for (const NamedTensor& parameter : model->parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    c10::NoGradGuard no_grad;
    at::Tensor direction = at::empty(parameter.tensor.sizes(), parameter.tensor.options());
    Rng rng(1, static_cast<uint64_t>(direction.numel()));
    for (int64_t i = 0; i < direction.numel(); ++i) direction.data_ptr<float>()[i] = static_cast<float>(rng.normal());
    double expected = (direction * parameter.tensor.grad()).sum().item<double>();
    double step = 1e-2 / direction.norm().item<double>();
    at::Tensor before = parameter.tensor.clone();
    parameter.tensor.add_(direction, step);
    double up = loss().item<double>();
    parameter.tensor.copy_(before).add_(direction, -step);
    double down = loss().item<double>();
    parameter.tensor.copy_(before);
    EXPECT_NEAR((up - down) / (2 * step), expected, 0.02 * std::abs(expected) + 0.05) << parameter.name;
  }
}

TEST(transformer, frozen_parameters_get_no_gradient_and_change_no_other) {
  Packed packed = random_packed({7, 18}, 50, 6);
  auto gradients = [&](Model& model) {
    model.hidden(packed).sum().backward();
    std::vector<at::Tensor> list;
    for (const NamedTensor& parameter : model.parameters()) list.push_back(parameter.tensor.grad());
    return list;
  };
  auto whole = make_model(tiny_config(), 7, at::kCPU), part = make_model(tiny_config(), 7, at::kCPU);
  EXPECT_EQ(whole->trainable().size(), whole->parameters().size());
  for (const NamedTensor& parameter : part->parameters())
    parameter.tensor.requires_grad_(parameter.name.find("k_proj") != std::string::npos ||
                                    parameter.name.find("layers.1.mlp.down_proj") != std::string::npos);
  ASSERT_EQ(part->trainable().size(), 5u) << "weight and bias of k in two layers, one down";
  std::vector<at::Tensor> all = gradients(*whole), some = gradients(*part);
  for (size_t i = 0; i < all.size(); ++i) {
    const NamedTensor& parameter = part->parameters()[i];
    EXPECT_EQ(some[i].defined(), parameter.tensor.requires_grad()) << parameter.name;
    if (some[i].defined()) {
      EXPECT_TRUE(some[i].equal(all[i])) << parameter.name;
    }
  }
  for (const NamedTensor& parameter : part->parameters()) parameter.tensor.requires_grad_(false);
  EXPECT_FALSE(part->hidden(packed).requires_grad()) << "nothing to train: nothing is kept for a backward";
}

TEST(transformer, a_token_beyond_the_vocabulary_is_refused) {
  auto model = make_model(tiny_config(), 7, at::kCPU);
  Packed packed = random_packed({3}, 50, 6);
  packed.token[1] = 50;
  EXPECT_THROW(model->hidden(packed), Error);
}

}  // namespace
}  // namespace ucas

#include "model/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "support/engine/emulation.h"
#include "support/engine/small_models.h"

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
    const NamedTensor parameter = part->parameters()[i];
    EXPECT_EQ(some[i].defined(), parameter.tensor.requires_grad()) << parameter.name;
    if (some[i].defined()) {
      EXPECT_TRUE(some[i].equal(all[i])) << parameter.name;
    }
  }
  for (const NamedTensor& parameter : part->parameters()) parameter.tensor.requires_grad_(false);
  EXPECT_FALSE(part->hidden(packed).requires_grad()) << "nothing to train: nothing is kept for a backward";
}

TEST(transformer, the_work_it_is_asked_to_do_is_counted_from_shapes) {
  const ModelConfig config = testing::small_shape();
  auto model = make_model(config, 3, at::kCPU);
  const double token = 2 * block_multiply_adds(config),
               key = 2 * key_multiply_adds(config) * static_cast<double>(config.num_hidden_layers);
  Packed packed;
  packed.append(std::vector<int32_t>{1, 2, 3});
  auto operations = [&, before = 0.0]() mutable {
    return model->work().operations - std::exchange(before, model->work().operations);
  };
  {
    c10::NoGradGuard no_grad;
    const at::Tensor hidden = model->hidden(packed);
    EXPECT_DOUBLE_EQ(operations(), 3 * token + (1 + 2 + 3) * key);
    model->head().stats(hidden, {1, 2, 3}, 1.0);
    EXPECT_DOUBLE_EQ(operations(), 3 * 2 * head_multiply_adds(config));
  }
  model->hidden(packed);
  EXPECT_DOUBLE_EQ(operations(), 3 * (3 * token + (1 + 2 + 3) * key));
  packed.append(std::vector<int32_t>{4}, {}, 0);  // shares the three before it
  c10::NoGradGuard no_grad;
  model->hidden(packed);
  EXPECT_DOUBLE_EQ(operations(), 4 * token + (1 + 2 + 3 + 4) * key);
  EXPECT_EQ(model->work().bytes, 0);
  auto cache = model->make_cache(1, 8);
  const int64_t slot = 0;
  Packed prompt;
  prompt.append(std::vector<int32_t>{1, 2});
  model->prefill(prompt, *cache, {&slot, 1});
  model->decode(std::vector<int32_t>{3}, std::vector<int32_t>{2}, {&slot, 1}, *cache);
  const auto keys =
      static_cast<double>(3 * config.num_hidden_layers * 2 * config.num_key_value_heads * config.head_dim);
  EXPECT_DOUBLE_EQ(model->work().bytes, 4 * (block_multiply_adds(config) + keys));
}

TEST(transformer, a_token_beyond_the_vocabulary_is_refused) {
  auto model = make_model(tiny_config(), 7, at::kCPU);
  Packed packed = random_packed({3}, 50, 6);
  packed.token[1] = 50;
  EXPECT_THROW(model->hidden(packed), Error);
}

// Every parameter's gradient of one pass over three sequences.
std::vector<at::Tensor> gradients_of(Model& model) {
  Packed packed = random_packed({5, 37, 1}, 50, 3);
  std::vector<int32_t> target(packed.token.size(), 7);
  for (int pass = 0; pass < 2; ++pass) {  // gradients add up
    at::Tensor hidden = model.hidden(packed);
    HeadStats stats = model.head().stats(hidden, target, 1.0);
    (stats.logprob.sum() + 0.3 * stats.entropy.sum()).backward();
  }
  std::vector<at::Tensor> list;
  for (const NamedTensor& p : model.trainable()) list.push_back(p.tensor.grad().clone());
  return list;
}

TEST(transformer, gradients_have_the_same_bits_whatever_is_kept_of_the_blocks) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    for (const char* family : {"qwen2", "qwen3", "gemma3_text", "smollm3", "granite", "olmo3"}) {
      ModelConfig config = tiny_config();
      testing::use_family(config, family);
      if (config.family->block.window == Window::pattern) config.windows = {9, 0};
      std::vector<at::Tensor> all;
      for (Recompute recompute : {Recompute::none, Recompute::keep_attention, Recompute::block}) {
        ModelOptions options{.dtype = dtype, .recompute = recompute};
        auto model = make_model(config, 7, at::kCPU, options);
        std::vector<at::Tensor> gradients = gradients_of(*model);
        if (all.empty()) all = gradients;
        ASSERT_EQ(gradients.size(), all.size());
        for (size_t i = 0; i < all.size(); ++i) {
          EXPECT_TRUE(gradients[i].equal(all[i])) << word_of(dtype) << " " << word_of(recompute) << " " << i;
        }
      }
    }
  }
}

TEST(transformer, a_frozen_model_in_bf16_holds_two_bytes_a_weight_and_a_trained_one_has_f32_masters) {
  ModelOptions options{.dtype = Dtype::bf16, .trained = Trained::none};
  auto frozen = make_model(tiny_config(), 7, at::kCPU, options);
  for (const NamedTensor& p : frozen->parameters()) {
    EXPECT_EQ(p.tensor.scalar_type(), p.tensor.dim() == 2 ? at::kBFloat16 : at::kFloat) << p.name;
    EXPECT_FALSE(p.tensor.requires_grad());
  }
  options.trained = Trained::all;
  auto trained = make_model(tiny_config(), 7, at::kCPU, options);
  for (const NamedTensor& p : trained->trainable()) EXPECT_EQ(p.tensor.scalar_type(), at::kFloat) << p.name;
  Packed packed = random_packed({5, 9}, 50, 3);
  EXPECT_TRUE(frozen->hidden(packed).equal(trained->hidden(packed).detach()));
  // What an optimizer changes is computed with after refresh(), and not before.
  at::Tensor before = trained->hidden(packed).detach();
  for (const NamedTensor& p : trained->trainable()) {
    if (p.tensor.dim() == 2) p.tensor.detach().mul_(1.5);
  }
  EXPECT_TRUE(before.equal(trained->hidden(packed).detach()));
  trained->refresh();
  EXPECT_FALSE(before.equal(trained->hidden(packed).detach()));
}

TEST(transformer, without_the_values_of_its_masters_a_bf16_model_computes_and_learns_the_same) {
  const LoraConfig lora{.rank = 4, .modules_to_save = {"embed_tokens"}};
  for (ModelOptions options : {ModelOptions{.dtype = Dtype::bf16},
                               ModelOptions{.dtype = Dtype::bf16, .trained = Trained::adapter, .lora = lora}}) {
    for (const bool emulated : {false, true}) {
      const auto whole = make_model(tiny_config(), 7, at::kCPU, options),
                 bare = make_model(tiny_config(), 7, at::kCPU, options);
      const auto view = emulated ? emulated_view(*bare) : nullptr,
                 of_whole = emulated ? emulated_view(*whole) : nullptr;
      const std::vector<Bf16Copy> copies = bare->bf16_copies();
      size_t matrices = 0;
      for (const NamedTensor& p : bare->trainable()) matrices += p.tensor.dim() == 2 ? 1 : 0;
      EXPECT_EQ(copies.size(), matrices);
      for (const Bf16Copy& copy : copies) drop_values(copy.master);
      Model &a = emulated ? *of_whole : *whole, &b = emulated ? *view : *bare;
      b.refresh();  // of what has values
      const std::vector<at::Tensor> want = gradients_of(a), got = gradients_of(b);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(want[i].equal(got[i])) << i << emulated;
      EXPECT_ANY_THROW(copies[0].master.data_ptr<float>()) << "dropped values must not be read";
      allocate_values(copies[0].master);
      EXPECT_NO_THROW(copies[0].master.data_ptr<float>());
      EXPECT_TRUE(aten_view(*whole)->bf16_copies().empty()) << "it reads the leaves";
    }
  }
  EXPECT_TRUE(make_model(tiny_config(), 7, at::kCPU)->bf16_copies().empty());
}

TEST(transformer, of_a_model_with_an_adapter_only_the_adapter_has_gradients_and_a_fresh_one_changes_nothing) {
  ModelOptions options{.trained = Trained::adapter};
  options.lora = {.rank = 4, .target_modules = {"q_proj", "down_proj"}, .modules_to_save = {"model.norm"}};
  auto plain = make_model(tiny_config(), 7, at::kCPU), model = make_model(tiny_config(), 7, at::kCPU, options);
  Packed packed = random_packed({5, 9}, 50, 3);
  EXPECT_TRUE(plain->hidden(packed).detach().equal(model->hidden(packed).detach()));
  std::vector<std::string> names;
  for (const NamedTensor& p : model->trainable()) names.push_back(p.name);
  EXPECT_EQ(names.size(), 1u + 2u * 2u * 2u);
  EXPECT_EQ(names.front(), "model.norm.weight");
  EXPECT_EQ(names[1], "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  gradients_of(*model);
  for (const NamedTensor& p : model->parameters()) EXPECT_EQ(p.tensor.grad().defined(), p.name == "model.norm.weight");
  for (const NamedTensor& p : model->adapter()) {
    const bool second = p.name.find("lora_B") != std::string::npos;  // A's gradient is 0 as long as B is
    EXPECT_EQ(p.tensor.grad().abs().max().item<float>() > 0, second) << p.name;
    p.tensor.detach().fill_(0.1);
  }
  model->refresh();
  EXPECT_FALSE(plain->hidden(packed).detach().equal(model->hidden(packed).detach()));
  EXPECT_TRUE(plain->hidden(packed).detach().equal(model->base()->hidden(packed)));
}

}  // namespace
}  // namespace ucas

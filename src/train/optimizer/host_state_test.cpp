// Offloaded state against state next to the parameters: bit-identical, whatever the parts.
#include "train/optimizer/host_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/str.h"
#include "hf/parameters.h"
#include "model/backend/gpu/gpu_block.h"
#include "support/engine/gpu_views.h"
#include "train/optimizer/optimizer.h"
#include "train/optimizer/update_rules.h"

namespace ucas {
namespace {

constexpr int64_t kSmallSlice = 2 * kQuantBlock;  // several parts of each matrix, the last one short

std::unique_ptr<Model> model_to_offload(const ModelOptions& options, at::Device device = at::kCPU) {
  ModelConfig config;
  config.family = &kFamilies[0];  // with biases: vectors that have no bf16 copy
  config.hidden_size = 64;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 90;  // matrices of 5,760: no multiple of the slice
  config.vocab_size = 83;
  return make_model(config, 3, device, options);
}

void set_gradients_of(Model& model, int64_t step) {
  for (const NamedTensor& p : model.trainable()) {
    const at::Tensor x = at::arange(p.tensor.numel(), at::kFloat).view(p.tensor.sizes());
    p.tensor.mutable_grad() = (x * 0.3 + static_cast<double>(step)).sin().to(p.tensor.device());
  }
}

bool same(const at::Tensor& a, const at::Tensor& b) { return a.cpu().equal(b.cpu()); }

// "" where weights, masters and moments are the same.
std::string difference_of_state(Model& a, Optimizer& of_a, Model& b, Optimizer& of_b) {
  const auto moments_a = of_a.state(), moments_b = of_b.state();
  if (moments_a.size() != moments_b.size()) return "other moments";
  for (size_t i = 0; i < moments_a.size(); ++i)
    if (!same(moments_a[i].tensor, moments_b[i].tensor)) return moments_a[i].name;
  const auto weights_a = a.trainable(), weights_b = b.trainable();
  for (size_t i = 0; i < weights_a.size(); ++i)
    if (!same(of_a.values_of(weights_a[i].tensor), of_b.values_of(weights_b[i].tensor))) return weights_a[i].name;
  const auto copies_a = a.bf16_copies(), copies_b = b.bf16_copies();
  for (size_t i = 0; i < copies_a.size(); ++i)
    if (!same(copies_a[i].compute, copies_b[i].compute)) return str("bf16 copy ", i);
  return "";
}

// Updates of the same model with its state in place and on the host.
void expect_same_updates(const ModelOptions& options, const OptimizerConfig& config, Optimizer::Path path,
                         at::Device device) {
  const auto plain = model_to_offload(options, device), away = model_to_offload(options, device);
  Optimizer resident(plain->trainable(), config, path);
  Optimizer on_host(away->trainable(), config, path,
                    {.on_host = true, .copies = away->bf16_copies(), .slice = kSmallSlice});
  const std::string name = str(device.str(), " ", word_of(options.dtype), options.lora.on() ? " adapter " : " ",
                               word_of(config.kind), " ", word_of(config.moments), " path ", static_cast<int>(path));
  for (int64_t step = 0; step < 4; ++step) {
    set_gradients_of(*plain, step);
    set_gradients_of(*away, step);
    EXPECT_EQ(resident.step(0.01).grad_norm, on_host.step(0.01).grad_norm);
    plain->refresh();
    away->refresh();
    ASSERT_EQ(difference_of_state(*plain, resident, *away, on_host), "") << name << ", step " << step;
  }
  for (const NamedTensor& p : away->trainable()) EXPECT_EQ(p.tensor.grad().abs().sum().item<double>(), 0) << name;
}

// By the CPU's rule, by that of GPUs as it is emulated, by LibTorch's; and on a GPU where there is one.
TEST(host_state, an_update_through_buffers_has_the_bits_of_one_in_place) {
  const LoraConfig lora{.rank = 5, .modules_to_save = {"embed_tokens"}};
  const ModelOptions all[] = {
      {.dtype = Dtype::f32}, {.dtype = Dtype::bf16}, {.dtype = Dtype::bf16, .trained = Trained::adapter, .lora = lora}};
  using Path = Optimizer::Path;
  for (const ModelOptions& options : all) {
    for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
      for (MomentType moments : {MomentType::f32, MomentType::bf16, MomentType::int8}) {
        const OptimizerConfig config{.kind = kind, .moments = moments};
        for (Path path : {Path::by_device, Path::kernels, Path::aten})
          expect_same_updates(options, config, path, at::kCPU);
        if (testing::has_cuda()) expect_same_updates(options, config, Path::by_device, at::Device(at::kCUDA, 0));
      }
    }
  }
}

// A parameter of f32 may be rows of a wider matrix, which begin where no sixteen bytes do.
TEST(host_state, a_kernel_that_reads_fours_is_not_given_what_begins_between_them) {
  static int64_t given = 0;
  gpu::Table table = *emulation().table;
  table.adamw = [](gpu::Stream, const gpu::AdamW& a) {
    ++given;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.p) % 16, 0U);
  };
  const gpu::Table* usual = std::exchange(emulation().table, &table);
  const at::Tensor wide = at::arange(64, at::kFloat);
  for (const int64_t first : {0, 3}) {
    ParameterState slot{.name = "w", .parameter = wide.narrow(0, first, 32), .mean = {}, .square = {}};
    slot.mean = make_moment(slot.parameter, MomentType::f32, false);
    slot.square = make_moment(slot.parameter, MomentType::f32, true);
    slot.parameter.mutable_grad() = at::arange(32, at::kFloat);
    EXPECT_TRUE(adamw_on_gpu(slot, {OptimizerConfig{}, 1, 0.01, 1, 0}));
  }
  emulation().table = usual;
  EXPECT_EQ(given, 1);
}

TEST(host_state, masters_with_a_bf16_copy_leave_the_device_and_others_stay) {
  const auto model = model_to_offload({.dtype = Dtype::bf16});
  const size_t copies = model->bf16_copies().size();
  const Optimizer optimizer(model->trainable(), {}, Optimizer::Path::by_device,
                            {.on_host = true, .copies = model->bf16_copies()});
  size_t gone = 0;
  for (const NamedTensor& p : model->trainable()) {
    EXPECT_EQ(has_values(p.tensor), p.tensor.dim() == 1) << p.name;
    EXPECT_EQ(optimizer.values_of(p.tensor).sizes(), p.tensor.sizes());
    gone += has_values(p.tensor) ? 0 : 1;
  }
  EXPECT_EQ(gone, copies);
}

}  // namespace
}  // namespace ucas

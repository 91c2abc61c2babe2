// The check of a device, tried on the CPU: what is right passes, and of a model with other weights each part is found.
#include "train/update/self_check.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/engine/gpu_views.h"

namespace ucas {
namespace {

TEST(gpu_check, emulated_kernels_are_as_near_to_the_native_path_as_a_device_must_be) {
  ModelConfig own;
  own.family = find_family("qwen3");
  own.num_attention_heads = 4;
  own.num_key_value_heads = 2;
  own.head_dim = 128;
  for (const ModelConfig* model : {static_cast<const ModelConfig*>(nullptr), static_cast<const ModelConfig*>(&own)}) {
    const auto a = model_to_check(at::kCPU, model), b = model_to_check(at::kCPU, model);
    if (model != nullptr) {
      EXPECT_EQ(a->config().head_dim, 128);
    }
    for (const GpuFinding& f : check_model(*a, *emulated_view(*b))) {
      EXPECT_TRUE(f.ok()) << f.what << " " << f.difference;
    }
  }
}

TEST(gpu_check, other_weights_are_found_in_every_part) {
  const auto right = model_to_check(at::kCPU), other = model_to_check(at::kCPU);
  {
    const at::NoGradGuard no_grad;
    for (const NamedTensor& p : other->parameters()) {
      if (p.name == "model.layers.1.self_attn.k_proj.bias") p.tensor.detach().add_(1.0);
      if (p.name == "model.embed_tokens.weight") p.tensor.detach().mul_(100);  // decays from elsewhere
    }
    other->refresh();
  }
  for (const GpuFinding& f : check_model(*right, *emulated_view(*other))) EXPECT_FALSE(f.ok()) << f.what;
}

TEST(gpu_check, a_device_without_kernels_has_nothing_to_prove_and_nothing_to_show) {
  require_sound_gpu(*model_to_check(at::kCPU));
  EXPECT_THROW(check_gpu(at::kCPU), Error);
}

TEST(gpu_check, a_device_that_is_there_is_sound) {
  if (!testing::has_cuda()) return;
  for (const GpuFinding& f : check_gpu(at::Device(at::kCUDA, 0))) {
    EXPECT_TRUE(f.ok()) << f.what << " " << f.difference << " " << f.bound;
  }
}

}  // namespace
}  // namespace ucas

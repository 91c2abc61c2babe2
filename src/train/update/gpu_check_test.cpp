#include "train/update/gpu_check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/tensor/stream.h"
#include "support/engine/gpu_views.h"

namespace ucas {
namespace {

TEST(gpu_check_update, equal_weights_are_updated_alike_and_others_are_found) {
  const auto a = models_to_check(at::kCPU, GpuShapes::few), b = models_to_check(at::kCPU, GpuShapes::few);
  EXPECT_EQ(check_update(*a[0], *b[0]).difference, 0);
  const auto c = models_to_check(at::kCPU, GpuShapes::few);  // decays from elsewhere
  c[0]->parameters().front().tensor.detach().mul_(100);
  EXPECT_FALSE(check_update(*a[0], *c[0]).ok());
}

TEST(gpu_check_update, a_device_without_kernels_has_nothing_to_prove_and_nothing_to_show) {
  require_sound_gpu(*models_to_check(at::kCPU, GpuShapes::few)[0]);
  EXPECT_THROW(check_gpu(at::kCPU, false), Error);
}

TEST(gpu_check_update, a_device_that_is_there_is_sound) {
  if (!testing::has_cuda()) return;
  for (const GpuFinding& f : check_gpu(at::Device(at::kCUDA, 0), false)) {
    EXPECT_TRUE(f.ok()) << f.what << " " << f.difference << " " << f.bound;
  }
}

}  // namespace
}  // namespace ucas

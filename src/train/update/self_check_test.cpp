#include "train/update/self_check.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

std::unique_ptr<Model> checked_model() {
  ModelConfig config;
  config.num_hidden_layers = 1;
  config.tie_word_embeddings = false;
  return make_model(config, 3, at::kCPU);
}

TEST(self_check, a_sound_model_passes) {
  auto model = checked_model();
  EXPECT_LT(check_head(*model, {1, 2, 3}, 1.0).value_difference, 1e-3);
  for (const NamedTensor& p : model->parameters()) EXPECT_FALSE(p.tensor.grad().defined()) << p.name << ": untouched";
}

// 0.01 is the lowest that rollout.temperature may be.
TEST(self_check, rounding_at_a_low_temperature_is_no_fault) {
  auto model = checked_model();
  model->head().weight().leaf.detach().mul_(300);  // logits of the size that trained models have
  EXPECT_LT(check_head(*model, {1, 2, 3}, 1.0).value_difference, 1e-3);
  EXPECT_GT(check_head(*model, {1, 2, 3}, 0.01).value_difference, 1e-3);
}

// Each weight is finite, the logits are not: a comparison must not take NaN for no difference.
TEST(self_check, logits_that_overflow_are_called_so) {
  auto model = checked_model();
  model->head().weight().leaf.detach().fill_(3e38f);
  try {
    check_head(*model, {1, 2, 3}, 1.0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "numeric");
    EXPECT_NE(std::string(error.what()).find("are not finite"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("UCAS_ISA"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ucas

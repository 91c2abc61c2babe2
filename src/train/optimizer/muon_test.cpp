#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "base/text/json.h"
#include "support/engine/threads.h"
#include "train/optimizer/optimizer.h"

namespace ucas {
namespace {

constexpr const char* kMatrix = "model.layers.3.mlp.up_proj.weight";

at::Tensor random_matrix(int64_t rows, int64_t columns, uint64_t stream) {
  at::Tensor t = at::zeros({rows, columns});
  Rng rng(2, stream);
  for (int64_t i = 0; i < t.numel(); ++i) t.mutable_data_ptr<float>()[i] = static_cast<float>(rng.normal());
  return t;
}

OptimizerConfig muon_config(MomentType moments = MomentType::f32) {
  OptimizerConfig config;
  config.kind = OptimizerKind::muon;
  config.moments = moments;
  config.grad_clip = 0;
  return config;
}

// torch.optim.Muon with match_rms_adamw, its iterations in float64 (tools/make_muon_goldens.py).
TEST(muon, three_steps_agree_with_torch) {
  const Json golden = read_json(UCAS_SOURCE_DIR "/tests/goldens/muon.json", 1 << 20);
  OptimizerConfig config = muon_config();
  config.weight_decay = golden["weight_decay"];
  config.momentum = golden["momentum"];
  ASSERT_EQ(golden["cases"].size(), 3u);
  for (const Json& row : golden["cases"]) {
    const auto shape = row["shape"].get<std::vector<int64_t>>();
    at::Tensor p = at::tensor(row["begin"].get<std::vector<float>>()).view(shape).set_requires_grad(true);
    Optimizer optimizer({{kMatrix, p}}, config);
    for (const Json& step : row["steps"]) {
      p.mutable_grad() = at::tensor(step["gradient"].get<std::vector<float>>()).view(shape);
      optimizer.step(golden["lr"]);
      const auto expected = step["parameter"].get<std::vector<float>>();
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(p.const_data_ptr<float>()[i], expected[i], 2e-6);
      EXPECT_EQ(p.grad().abs().sum().item<float>(), 0);
    }
  }
}

TEST(muon, a_step_has_the_gradients_singular_vectors_and_singular_values_near_one) {
  for (auto [rows, columns] : {std::pair{48, 48}, {96, 24}, {24, 96}}) {
    const at::Tensor g = random_matrix(rows, columns, 1).mul(1e-5), x = orthogonalized(g);
    ASSERT_EQ(x.sizes(), g.sizes());
    const at::Tensor values = at::linalg_svdvals(x);
    EXPECT_GT(values.min().item<double>(), rows == columns ? 0.3 : 0.68);  // the smallest of a square one starts near 0
    EXPECT_LT(values.max().item<double>(), 1.21);
    // <g, x> is the sum of g's singular values times x's if the vectors are the same, and less if not.
    const double along = g.mul(x).sum().item<double>(),
                 at_most = at::linalg_svdvals(g).mul(values.flip(0)).sum().item<double>();
    const double nuclear = at::linalg_svdvals(g).sum().item<double>();
    EXPECT_GT(along, 0.7 * nuclear);
    EXPECT_LT(along, 1.21 * nuclear);
    EXPECT_GT(along, 0.9 * at_most);
  }
  EXPECT_EQ(orthogonalized(at::zeros({4, 6})).abs().sum().item<float>(), 0);
}

TEST(muon, a_step_has_the_same_bits_with_any_number_of_threads) {
  for (auto [rows, columns] : {std::pair{96, 400}, {400, 96}, {130, 515}, {2, 64}, {64, 2}}) {
    const at::Tensor g = random_matrix(rows, columns, 5);
    const auto step_of = [&](int threads) {
      const testing::Threads these(threads);
      return orthogonalized(g).contiguous();
    };
    const at::Tensor one = step_of(1);
    for (int threads : {2, 3, 7})
      EXPECT_TRUE(step_of(threads).equal(one)) << rows << " x " << columns << ", " << threads;
  }
}

TEST(muon, a_step_is_as_large_as_one_of_adamw) {
  at::Tensor p = at::zeros({64, 160}).set_requires_grad(true);
  OptimizerConfig config = muon_config();
  config.weight_decay = 0;
  Optimizer optimizer({{kMatrix, p}}, config);
  p.mutable_grad() = random_matrix(64, 160, 2);
  optimizer.step(0.01);
  const double rms = std::sqrt(p.detach().square().mean().item<double>());
  EXPECT_NEAR(rms, 0.2 * 0.01, 0.2 * 0.01 * 0.15);
}

TEST(muon, is_for_matrices_of_the_blocks_and_all_else_has_adamw) {
  const auto moments_of = [](const std::string& name, at::IntArrayRef shape) {
    Optimizer optimizer({{name, at::zeros(shape).set_requires_grad(true)}}, muon_config());
    std::string text;
    for (const NamedTensor& t : optimizer.state()) text += t.name.substr(0, t.name.find('/')) + " ";
    return text;
  };
  const std::string adamw = "exp_avg exp_avg_sq ", buffer = "momentum_buffer ";
  EXPECT_EQ(moments_of(kMatrix, {4, 3}), buffer);
  EXPECT_EQ(moments_of("model.layers.0.self_attn.q_proj.lora_A.weight", {2, 8}), buffer);
  EXPECT_EQ(moments_of("model.layers.0.self_attn.q_proj.bias", {4}), adamw);
  EXPECT_EQ(moments_of("model.layers.0.input_layernorm.weight", {4}), adamw);
  EXPECT_EQ(moments_of("model.embed_tokens.weight", {9, 4}), adamw);
  EXPECT_EQ(moments_of("lm_head.weight", {9, 4}), adamw);
  EXPECT_EQ(moments_of("value_head.weight", {4}), adamw);
}

// q, k and v lie side by side in one storage (model/weights.h); each is a matrix of its own.
TEST(muon, matrices_of_one_storage_are_updated_apart) {
  const at::Tensor begin = random_matrix(12, 8, 3), gradient = random_matrix(12, 8, 4);
  const auto update = [&](const std::vector<at::Tensor>& parts, const std::vector<at::Tensor>& gradients) {
    std::vector<NamedTensor> named;
    for (size_t i = 0; i < parts.size(); ++i) {
      at::Tensor parameter = parts[i].detach().set_requires_grad(true);
      parameter.mutable_grad() = gradients[i].clone();  // which the step zeroes
      named.push_back({"model.layers.0." + std::to_string(i), parameter});
    }
    Optimizer(named, muon_config()).step(0.1);
  };
  at::Tensor joint = begin.clone(), first = begin.narrow(0, 0, 8).clone(), second = begin.narrow(0, 8, 4).clone();
  update({joint.narrow(0, 0, 8), joint.narrow(0, 8, 4)}, {gradient.narrow(0, 0, 8), gradient.narrow(0, 8, 4)});
  update({first}, {gradient.narrow(0, 0, 8)});
  update({second}, {gradient.narrow(0, 8, 4)});
  EXPECT_TRUE(joint.narrow(0, 0, 8).equal(first));
  EXPECT_TRUE(joint.narrow(0, 8, 4).equal(second));
}

TEST(muon, a_result_that_is_not_finite_is_an_error) {
  at::Tensor p = at::zeros({4, 4}).set_requires_grad(true);
  Optimizer optimizer({{kMatrix, p}}, muon_config());
  p.mutable_grad() = random_matrix(4, 4, 5);
  optimizer.state()[0].tensor.fill_(INFINITY);
  EXPECT_ANY_THROW(optimizer.step(0.1));
}

}  // namespace
}  // namespace ucas

#include "train/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "train/schedule.h"

namespace ucas {
namespace {

NamedTensor parameter(const std::string& name, const std::vector<float>& values, std::vector<int64_t> shape = {}) {
  at::Tensor t = at::tensor(values);
  if (!shape.empty()) t = t.view(shape);
  return {name, t.set_requires_grad(true)};
}

void set_grad(NamedTensor& p, const std::vector<float>& values) {
  p.tensor.mutable_grad() = at::tensor(values).view(p.tensor.sizes());
}

float value(const NamedTensor& p, int64_t i) { return p.tensor.const_data_ptr<float>()[i]; }

// The cases that the algorithm sheet was checked with, when they are at hand.
Json algorithm_case(const std::string& id) {
  const char* data = std::getenv("UCAS_SHARED_DATA");
  std::string path =
      path_join(data != nullptr ? data : UCAS_SOURCE_DIR "/../shared/data", "../design/algorithm-cases.json");
  if (!exists(path)) return nullptr;
  Json all = read_json(path, 64 << 20);
  for (const Json& row : all["cases"]) {
    if (row["id"] == id) return row;
  }
  return nullptr;
}

TEST(optimizer, three_clipped_steps_agree_with_torch) {
  // torch.optim.AdamW after clip_grad_norm_, in f32.
  OptimizerConfig config;
  config.beta1 = 0.9;
  config.beta2 = 0.98;
  config.weight_decay = 0.1;
  config.grad_clip = 0.5;
  std::vector<NamedTensor> p{parameter("w", {1, -2, 0.5f})};
  AdamW adam(p, config);
  const std::vector<std::vector<float>> grads = {{0.3f, -0.4f, 2.0f}, {3, 4, -1}, {-0.1f, 0.2f, 0.05f}};
  const double norms[] = {2.0615527629852295, 5.099019527435303, 0.22912879288196564};
  const float expected[][3] = {{0.978000045f, -1.97600007f, 0.479000002f},
                               {0.958454609f, -1.98323238f, 0.467811763f},
                               {0.947580993f, -1.99269748f, 0.457674325f}};
  for (size_t s = 0; s < grads.size(); ++s) {
    set_grad(p[0], grads[s]);
    StepResult result = adam.step(0.02);
    EXPECT_TRUE(result.applied);
    EXPECT_NEAR(result.grad_norm, norms[s], 1e-6);
    for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(value(p[0], i), expected[s][i], 3e-7) << "step " << s;
  }
}

TEST(optimizer, the_algorithm_sheets_case_holds) {
  Json row = algorithm_case("adamw");
  if (row.is_null()) GTEST_SKIP() << "algorithm-cases.json is not here";
  const Json &in = row["inputs"], &steps = row["expected"]["steps"];
  OptimizerConfig config;
  config.beta1 = in["b1"];
  config.beta2 = in["b2"];
  config.eps = in["eps"];
  config.weight_decay = in["wd"];
  config.grad_clip = in["clip"];
  std::vector<NamedTensor> p{parameter("p", in["p"].get<std::vector<float>>())};
  AdamW adam(p, config);
  for (size_t s = 0; s < steps.size(); ++s) {
    set_grad(p[0], in["grads"][s].get<std::vector<float>>());
    EXPECT_NEAR(adam.step(in["lr"]).grad_norm, steps[s]["grad_norm"].get<double>(), 1e-5);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(value(p[0], static_cast<int64_t>(i)), steps[s]["p"][i].get<double>(), 2e-6);
    }
  }
}

TEST(optimizer, a_gradient_that_is_not_finite_changes_nothing_and_is_zeroed) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<NamedTensor> p{parameter("a", {1, 2}), parameter("b", {3})};
    AdamW adam(p, {});
    set_grad(p[0], {0.5f, bad});
    set_grad(p[1], {1});
    EXPECT_FALSE(adam.step(0.1).applied);
    EXPECT_EQ(adam.steps(), 0);
    EXPECT_EQ(value(p[0], 0), 1);
    EXPECT_EQ(value(p[1], 0), 3);
    EXPECT_EQ(adam.grad_norm(), 0);
    for (const NamedTensor& moment : adam.state()) EXPECT_EQ(moment.tensor.abs().sum().item<double>(), 0);
  }
}

// The gradient is fine in each case; only what the step makes of weights and moments is not.
TEST(optimizer, a_result_that_is_not_finite_is_an_error_that_names_the_parameter) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  struct Case {
    const char* what;
    size_t tensor;  // of {parameter, exp_avg, exp_avg_sq}
    float value;
  };
  const Case cases[] = {{"weight nan", 0, nan},         {"weight inf", 0, infinity}, {"mean nan", 1, nan},
                        {"mean -inf", 1, -infinity},    {"square nan", 2, nan},      {"square inf", 2, infinity},
                        {"square negative", 2, -1e-3f}, {"all fine", 0, 1}};
  for (const Case& c : cases) {
    for (int64_t place : {0, 5, 36, 40000}) {  // in the vectorised part, its remainder and another chunk
      std::vector<NamedTensor> p{parameter("fine", {1}), parameter("w", std::vector<float>(40001, 0.5f))};
      AdamW adam(p, {});
      set_grad(p[0], {0.1f});
      set_grad(p[1], std::vector<float>(40001, 0.01f));
      at::Tensor touched = c.tensor == 0 ? p[1].tensor.detach() : adam.state()[2 + c.tensor - 1].tensor;
      touched.mutable_data_ptr<float>()[place] = c.value;
      try {
        adam.step(0.01);
        EXPECT_STREQ(c.what, "all fine") << place;
      } catch (const Error& error) {
        EXPECT_STRNE(c.what, "all fine") << place;
        EXPECT_EQ(error.exit_code(), kNumeric);
        EXPECT_NE(std::string(error.what()).find("left w or its moments"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(optimizer, a_square_that_overflows_is_noticed_although_the_weight_stays_finite) {
  OptimizerConfig config;
  config.grad_clip = 0;
  std::vector<NamedTensor> p{parameter("w", {1})};
  AdamW adam(p, config);
  set_grad(p[0], {1e25f});
  EXPECT_THROW(adam.step(0.01), Error);
}

TEST(optimizer, decay_on_matrices_leaves_vectors_alone) {
  OptimizerConfig config;
  config.decay = Decay::matrices;
  config.weight_decay = 0.5;
  std::vector<NamedTensor> p{parameter("bias", {1, 1}), parameter("weight", {1, 1}, {2, 1})};
  AdamW adam(p, config);
  set_grad(p[0], {0, 0});
  set_grad(p[1], {0, 0});
  adam.step(0.1);
  EXPECT_EQ(value(p[0], 0), 1.0f);
  EXPECT_FLOAT_EQ(value(p[1], 0), 0.95f);
}

TEST(optimizer, a_parameter_without_gradient_is_left_alone) {
  std::vector<NamedTensor> p{parameter("used", {1}), parameter("unused", {1})};
  AdamW adam(p, {});
  set_grad(p[0], {1});
  adam.step(0.1);
  EXPECT_NE(value(p[0], 0), 1.0f);
  EXPECT_EQ(value(p[1], 0), 1.0f);
}

TEST(optimizer, no_clipping_when_grad_clip_is_zero) {
  // The first AdamW step is lr * sign(g) whatever the scale, so look at the moments.
  OptimizerConfig config;
  config.grad_clip = 0;
  std::vector<NamedTensor> p{parameter("w", {1})};
  AdamW adam(p, config);
  set_grad(p[0], {100});
  adam.step(0.1);
  EXPECT_FLOAT_EQ(adam.state()[0].tensor.item<float>(), 10.0f);
}

// The kernel that other devices use, on the CPU: the same formula, called the same way.
TEST(optimizer, the_fused_kernel_of_other_devices_agrees) {
  OptimizerConfig config;
  config.weight_decay = 0.1;
  config.grad_clip = 0;
  std::vector<NamedTensor> p{parameter("w", {1, -2, 0.5f, 4})};
  AdamW adam(p, config);
  std::vector<at::Tensor> q{at::tensor({1.0f, -2.0f, 0.5f, 4.0f})}, m{at::zeros({4})}, v{at::zeros({4})};
  Rng rng(1, 2);
  for (int s = 1; s <= 5; ++s) {
    std::vector<float> g(4);
    for (float& x : g) x = static_cast<float>(rng.normal());
    set_grad(p[0], g);
    adam.step(0.01);
    std::vector<at::Tensor> grads{at::tensor(g)}, count{at::tensor(static_cast<float>(s))};
    at::_fused_adamw_(q, grads, m, v, {}, count, 0.01, config.beta1, config.beta2, 0.1, config.eps, false, false);
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(value(p[0], i), q[0][i].item<float>(), 5e-7) << "step " << s;
  }
}

// A large parameter with an odd size: the bits must not depend on how many threads share the work.
std::vector<float> steps_with_threads(int threads, double* norm) {
  int before = at::get_num_threads();
  at::set_num_threads(threads);
  constexpr int64_t kSize = 100003;
  std::vector<NamedTensor> p{{"w", at::empty({kSize}).set_requires_grad(true)}};
  Rng rng(7, 0);
  float* w = p[0].tensor.mutable_data_ptr<float>();
  for (int64_t i = 0; i < kSize; ++i) w[i] = static_cast<float>(rng.normal());
  AdamW adam(p, {});
  for (int s = 0; s < 3; ++s) {
    p[0].tensor.mutable_grad() = at::empty({kSize});
    float* g = p[0].tensor.mutable_grad().mutable_data_ptr<float>();
    for (int64_t i = 0; i < kSize; ++i) g[i] = static_cast<float>(rng.normal());
    *norm = adam.step(0.01).grad_norm;
  }
  at::set_num_threads(before);
  return std::vector<float>(w, w + kSize);
}

TEST(optimizer, bits_do_not_depend_on_the_number_of_threads) {
  double norm_1 = 0, norm_2 = 0, norm_5 = 0;
  auto one = steps_with_threads(1, &norm_1);
  EXPECT_EQ(one, steps_with_threads(2, &norm_2));
  EXPECT_EQ(one, steps_with_threads(5, &norm_5));
  EXPECT_EQ(norm_1, norm_2);
  EXPECT_EQ(norm_1, norm_5);
  EXPECT_NEAR(norm_1, std::sqrt(100003.0), 2);
}

TEST(optimizer, a_copied_state_goes_on_bit_for_bit) {
  std::vector<NamedTensor> p{parameter("w", {1, 2, 3})}, q{parameter("w", {9, 9, 9})};
  AdamW a(p, {}), b(q, {});
  set_grad(p[0], {1, -2, 0.5f});
  a.step(0.1);
  q[0].tensor.detach().copy_(p[0].tensor.detach());
  auto from = a.state(), to = b.state();
  for (size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(from[i].name, to[i].name);
    to[i].tensor.copy_(from[i].tensor);
  }
  b.set_steps(a.steps());
  for (auto* t : {&p[0], &q[0]}) set_grad(*t, {0.1f, 0.7f, -3});
  a.step(0.05);
  b.step(0.05);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(value(p[0], i), value(q[0], i));
}

TEST(schedule, the_first_rollout_step_of_a_warm_up_runs_at_rate_zero) {
  OptimizerConfig config;
  config.lr = 1;
  config.warmup_steps = 4;
  EXPECT_EQ(rollout_lr(config, 0, 10), 0);
  EXPECT_EQ(rollout_lr(config, 1, 10), 0.25);
  EXPECT_EQ(rollout_lr(config, 4, 10), 1);
  EXPECT_EQ(rollout_lr(config, 9, 10), 1);
  config.warmup_steps = 0;
  EXPECT_EQ(rollout_lr(config, 0, 10), 1);
}

TEST(schedule, the_algorithm_sheets_warm_up_holds) {
  Json row = algorithm_case("lr-warmup");
  if (row.is_null()) GTEST_SKIP() << "algorithm-cases.json is not here";
  OptimizerConfig config;
  config.lr = row["inputs"]["lr"];
  config.warmup_steps = row["inputs"]["warmup"];
  for (size_t i = 0; i < row["inputs"]["steps"].size(); ++i) {
    double factor = rollout_lr(config, row["inputs"]["steps"][i], 100) / config.lr;
    EXPECT_NEAR(factor, row["expected"]["factor"][i].get<double>(), 1e-6);
  }
}

TEST(schedule, updates_warm_up_then_follow_a_cosine_to_the_floor) {
  OptimizerConfig config;
  config.lr = 5e-3;
  config.warmup_steps = 40;
  config.schedule = Schedule::cosine;
  config.min_lr_ratio = 0.05;
  EXPECT_DOUBLE_EQ(update_lr(config, 0, 760), 5e-3 / 40);
  EXPECT_DOUBLE_EQ(update_lr(config, 39, 760), 5e-3);
  EXPECT_DOUBLE_EQ(update_lr(config, 40, 760), 5e-3);
  EXPECT_NEAR(update_lr(config, 400, 760), 5e-3 * (0.05 + 0.95 / 2), 1e-12);
  EXPECT_NEAR(update_lr(config, 760, 760), 5e-3 * 0.05, 1e-12);
  for (int64_t u = 41; u < 760; ++u) EXPECT_LT(update_lr(config, u, 760), update_lr(config, u - 1, 760));
}

}  // namespace
}  // namespace ucas

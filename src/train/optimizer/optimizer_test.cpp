#include "train/optimizer/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
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
#include "base/files/file.h"
#include "base/rng.h"
#include "base/text/json.h"
#include "train/optimizer/schedule.h"

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

// The first case of a method among our own.
Json algorithm_case(const std::string& method) {
  const Json all = read_json(UCAS_SOURCE_DIR "/tests/goldens/algorithm_cases.json", 64 << 20);
  for (const Json& row : all["cases"]) {
    if (row["method"] == method) return row;
  }
  return nullptr;
}

TEST(optimizer, three_clipped_steps_agree_with_torch) {
  // torch.optim.Optimizer after clip_grad_norm_, in f32.
  OptimizerConfig config;
  config.beta1 = 0.9;
  config.beta2 = 0.98;
  config.weight_decay = 0.1;
  config.grad_clip = 0.5;
  std::vector<NamedTensor> p{parameter("w", {1, -2, 0.5f})};
  Optimizer adam(p, config);
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

TEST(optimizer, the_worked_case_holds) {
  const Json row = algorithm_case("adamw");
  const Json &in = row["inputs"], &steps = row["expected"]["steps"];
  OptimizerConfig config;
  config.beta1 = in["b1"];
  config.beta2 = in["b2"];
  config.eps = in["eps"];
  config.weight_decay = in["wd"];
  config.grad_clip = in["clip"];
  std::vector<NamedTensor> p{parameter("p", in["p"].get<std::vector<float>>())};
  Optimizer adam(p, config);
  for (size_t s = 0; s < steps.size(); ++s) {
    set_grad(p[0], in["grads"][s].get<std::vector<float>>());
    EXPECT_NEAR(adam.step(in["lr"]).grad_norm, steps[s]["grad_norm"].get<double>(), 1e-5);
    for (size_t i = 0; i < steps[s]["p"].size(); ++i) {
      EXPECT_NEAR(value(p[0], static_cast<int64_t>(i)), steps[s]["p"][i].get<double>(), 2e-6);
    }
  }
}

TEST(optimizer, gradients_that_are_dropped_between_updates_count_as_zeros_and_take_no_memory) {
  const auto made = [] {
    return std::vector<NamedTensor>{parameter("a", {1, 2}), parameter("b", {3, -1}), parameter("never", {5})};
  };
  std::vector<NamedTensor> p = made(), q = made();
  Optimizer kept(p, {}), dropping(q, {});
  for (int step = 0; step < 3; ++step) {
    for (auto* list : {&p, &q}) {
      set_grad((*list)[0], {0.5f, -0.25f});
      if (step != 1) set_grad((*list)[1], {1, 2});  // in the second the pass leaves nothing there
    }
    EXPECT_EQ(kept.step(0.1).grad_norm, dropping.step(0.1).grad_norm);
    dropping.drop_gradients();
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_TRUE(p[i].tensor.equal(q[i].tensor)) << p[i].name << " in step " << step;
      EXPECT_FALSE(q[i].tensor.grad().defined());
    }
  }
  EXPECT_EQ(value(q[2], 0), 5) << "one that never had a gradient stays";
  EXPECT_NE(value(q[1], 0), 3);
}

TEST(optimizer, a_gradient_that_is_not_finite_changes_nothing_and_is_zeroed) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<NamedTensor> p{parameter("a", {1, 2}), parameter("b", {3})};
    Optimizer adam(p, {});
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
      Optimizer adam(p, {});
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
  Optimizer adam(p, config);
  set_grad(p[0], {1e25f});
  EXPECT_THROW(adam.step(0.01), Error);
}

TEST(optimizer, decay_on_matrices_leaves_vectors_alone) {
  OptimizerConfig config;
  config.decay = Decay::matrices;
  config.weight_decay = 0.5;
  std::vector<NamedTensor> p{parameter("bias", {1, 1}), parameter("weight", {1, 1}, {2, 1})};
  Optimizer adam(p, config);
  set_grad(p[0], {0, 0});
  set_grad(p[1], {0, 0});
  adam.step(0.1);
  EXPECT_EQ(value(p[0], 0), 1.0f);
  EXPECT_FLOAT_EQ(value(p[1], 0), 0.95f);
}

TEST(optimizer, a_parameter_without_gradient_is_left_alone) {
  std::vector<NamedTensor> p{parameter("used", {1}), parameter("unused", {1})};
  Optimizer adam(p, {});
  set_grad(p[0], {1});
  adam.step(0.1);
  EXPECT_NE(value(p[0], 0), 1.0f);
  EXPECT_EQ(value(p[1], 0), 1.0f);
}

TEST(optimizer, no_clipping_when_grad_clip_is_zero) {
  // The first Optimizer step is lr * sign(g) whatever the scale, so look at the moments.
  OptimizerConfig config;
  config.grad_clip = 0;
  std::vector<NamedTensor> p{parameter("w", {1})};
  Optimizer adam(p, config);
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
  Optimizer adam(p, config);
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

// Every kind and type of moments, and what a run with it is called in a failure.
struct Variant {
  OptimizerKind kind;
  MomentType moments;
  std::string name() const { return std::string(word_of(kind)) + " " + word_of(moments); }
};
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    for (MomentType type : {MomentType::f32, MomentType::bf16, MomentType::int8}) all.push_back({kind, type});
  }
  return all;
}

// A large vector of odd size and a matrix of a block, with random gradients.
class OptimizedModel {
 public:
  explicit OptimizedModel(const Variant& variant, Optimizer::Path path = Optimizer::Path::by_device)
      : parameters_{{"w", at::empty({100003}).set_requires_grad(true)},
                    {"model.layers.0.x", at::empty({80, 72}).set_requires_grad(true)}},
        rng_(7, 0),
        optimizer_(parameters_, {.kind = variant.kind, .moments = variant.moments}, path) {
    for (NamedTensor& p : parameters_) randomize(p.tensor.mutable_data_ptr<float>(), p.tensor.numel(), 1);
  }
  double step() {
    for (NamedTensor& p : parameters_) {
      p.tensor.mutable_grad() = at::empty(p.tensor.sizes());
      randomize(p.tensor.mutable_grad().mutable_data_ptr<float>(), p.tensor.numel(), 1e-2);
    }
    return optimizer_.step(0.01).grad_norm;
  }
  // Weights and moments, byte for byte.
  std::vector<std::string> bytes() const {
    std::vector<NamedTensor> all = optimizer_.state();
    all.insert(all.end(), parameters_.begin(), parameters_.end());
    std::vector<std::string> list;
    for (const NamedTensor& t : all) {
      list.emplace_back(static_cast<const char*>(t.tensor.detach().const_data_ptr()), t.tensor.nbytes());
    }
    return list;
  }
  void take_state_of(const OptimizedModel& other) {
    const auto copy = [](const std::vector<NamedTensor>& to, const std::vector<NamedTensor>& from) {
      for (size_t i = 0; i < to.size(); ++i) {
        EXPECT_EQ(to[i].name, from[i].name);
        to[i].tensor.detach().copy_(from[i].tensor.detach());
      }
    };
    copy(parameters_, other.parameters_);
    copy(optimizer_.state(), other.optimizer_.state());
    optimizer_.set_steps(other.optimizer_.steps());
    rng_ = other.rng_;
  }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

 private:
  void randomize(float* out, int64_t n, double size) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(size * rng_.normal());
  }

  std::vector<NamedTensor> parameters_;
  Rng rng_;
  Optimizer optimizer_;
};

TEST(optimizer, bits_do_not_depend_on_the_number_of_threads) {
  const int before = at::get_num_threads();
  for (const Variant& variant : variants()) {
    if (variant.kind == OptimizerKind::muon) continue;  // as at::mm has it
    const auto run = [&](int threads, double* norm) {
      at::set_num_threads(threads);
      OptimizedModel trained(variant);
      for (int s = 0; s < 3; ++s) *norm = trained.step();
      return trained.bytes();
    };
    double norm_1 = 0, norm_2 = 0, norm_5 = 0;
    const auto one = run(1, &norm_1);
    EXPECT_TRUE(one == run(2, &norm_2)) << variant.name();
    EXPECT_TRUE(one == run(5, &norm_5)) << variant.name();
    EXPECT_EQ(norm_1, norm_2);
    EXPECT_EQ(norm_1, norm_5);
    EXPECT_NEAR(norm_1, 1e-2 * std::sqrt(100003.0 + 80 * 72), 0.02);
  }
  at::set_num_threads(before);
}

TEST(optimizer, a_copied_state_goes_on_bit_for_bit) {
  for (const Variant& variant : variants()) {
    OptimizedModel whole(variant), resumed(variant);
    for (int s = 0; s < 3; ++s) whole.step();
    resumed.step();
    EXPECT_FALSE(whole.bytes() == resumed.bytes());
    resumed.take_state_of(whole);
    for (int s = 0; s < 2; ++s) {
      whole.step();
      resumed.step();
    }
    EXPECT_TRUE(whole.bytes() == resumed.bytes()) << variant.name();
  }
}

// f32 moments are the equation itself, element by element.
TEST(optimizer, adamw_in_f32_is_its_equation_to_the_bit) {
  const OptimizerConfig config;
  const std::vector<float> begin{1, -2, 0.5f, 1e-3f};
  std::vector<NamedTensor> p{parameter("w", begin)};
  Optimizer adam(p, config);
  std::vector<float> x = begin, m(4), v(4);
  const auto beta1 = static_cast<float>(config.beta1), beta2 = static_cast<float>(config.beta2);
  for (int t = 1; t <= 5; ++t) {
    const std::vector<float> g{0.25f / t, -0.125f, 0.001f * t, 0.0f};
    set_grad(p[0], g);
    adam.step(0.01);
    const auto keep = static_cast<float>(1 - 0.01 * config.weight_decay);
    const auto step_size = static_cast<float>(0.01 / (1 - std::pow(config.beta1, t)));
    const auto root = static_cast<float>(std::sqrt(1 - std::pow(config.beta2, t)));
    for (size_t i = 0; i < 4; ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      x[i] = x[i] * keep - step_size * (m[i] / (std::sqrt(v[i]) / root + static_cast<float>(config.eps)));
      EXPECT_EQ(value(p[0], static_cast<int64_t>(i)), x[i]) << "step " << t;
    }
  }
}

// Smaller moments give other steps, but not much: of the size of a step, after ten.
TEST(optimizer, packed_moments_and_the_operations_of_other_devices_stay_near_f32) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    OptimizedModel exact({kind, MomentType::f32});
    for (int s = 0; s < 10; ++s) exact.step();
    for (MomentType type : {MomentType::f32, MomentType::bf16, MomentType::int8}) {
      for (Optimizer::Path path : {Optimizer::Path::by_device, Optimizer::Path::aten}) {
        OptimizedModel trained({kind, type}, path);
        for (int s = 0; s < 10; ++s) trained.step();
        const double allowed = type == MomentType::f32 ? 1e-4 : type == MomentType::bf16 ? 0.02 : 0.15;
        for (size_t i = 0; i < 2; ++i) {
          const at::Tensor off = trained.parameters()[i].tensor.detach() - exact.parameters()[i].tensor.detach();
          const double steps = off.square().mean().sqrt().item<double>() / 0.01;
          EXPECT_LT(steps, allowed) << word_of(kind) << " " << word_of(type) << " parameter " << i;
        }
      }
    }
  }
}

TEST(optimizer, what_is_not_finite_is_an_error_with_every_type_of_moments) {
  for (const Variant& variant : variants()) {
    for (Optimizer::Path path : {Optimizer::Path::by_device, Optimizer::Path::aten}) {
      std::vector<NamedTensor> p{{"model.layers.0.x", at::zeros({80, 72}).set_requires_grad(true)}};
      OptimizerConfig config{.kind = variant.kind, .moments = variant.moments};
      Optimizer optimizer(p, config, path);
      p[0].tensor.mutable_grad() = at::zeros({80, 72}).fill_(0.1);
      EXPECT_NO_THROW(optimizer.step(0.01)) << variant.name();
      p[0].tensor.detach().mutable_data_ptr<float>()[4000] = std::numeric_limits<float>::quiet_NaN();
      p[0].tensor.mutable_grad().fill_(0.1);
      EXPECT_THROW(optimizer.step(0.01), Error) << variant.name();
    }
  }
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

TEST(schedule, a_warm_up_that_does_not_begin_at_zero_learns_from_its_first_rollout_step) {
  OptimizerConfig config;
  config.lr = 1;
  config.warmup_steps = 4;
  config.warmup_from_zero = false;
  EXPECT_EQ(rollout_lr(config, 0, 10), 0.25);
  EXPECT_EQ(rollout_lr(config, 2, 10), 0.75);
  EXPECT_EQ(rollout_lr(config, 3, 10), 1);
  EXPECT_EQ(rollout_lr(config, 9, 10), 1);
}

TEST(schedule, the_worked_case_of_a_warm_up_holds) {
  const Json row = algorithm_case("lr");
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

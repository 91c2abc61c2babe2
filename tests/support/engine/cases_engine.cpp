// Cases of formulas that live in the engine library: statistics of the LM head, the optimizer, learning rates.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "model/head/head.h"
#include "support/algorithm_cases.h"
#include "train/optimizer/optimizer.h"
#include "train/optimizer/schedule.h"

namespace ucas::testing {

namespace {

std::vector<float> floats(CaseRun& run, const std::string& key) {
  std::vector<double> values = flat(run.in(key), str("inputs.", key));
  return {values.begin(), values.end()};
}

at::Tensor vector_of(const std::vector<float>& values) { return at::tensor(values); }

at::Tensor matrix(CaseRun& run, const std::string& key) {
  auto rows = static_cast<int64_t>(run.in(key).size());
  std::vector<float> values = floats(run, key);
  if (rows == 0 || values.empty() || values.size() % static_cast<size_t>(rows) != 0) {
    throw Error(ErrorKind::schema, str("inputs.", key, " is not a matrix"));
  }
  return vector_of(values).view({rows, -1}).contiguous();
}

std::vector<double> numbers(const at::Tensor& t) {
  at::Tensor dense = t.detach().to(at::kDouble).contiguous().view({-1});
  return {dense.const_data_ptr<double>(), dense.const_data_ptr<double>() + dense.numel()};
}

// One implementation of the statistics, in value and gradient. loss = sum g lp + e H + u C over rows.
using MakeHead = std::unique_ptr<Head> (*)(Matrix);
void check_head(CaseRun& run, MakeHead make_head) {
  at::Tensor h = matrix(run, "h").set_requires_grad(true), w = matrix(run, "W").set_requires_grad(true);
  std::vector<int32_t> y = run.in("y").get<std::vector<int32_t>>();
  double temperature = run.number("temperature", 1), log_v = std::log(static_cast<double>(w.size(0)));
  HeadStats stats = make_head({w, w})->stats(h, y, temperature);
  std::vector<double> lp = numbers(stats.logprob), raw = numbers(stats.logit), H = numbers(stats.entropy),
                      C = numbers(stats.confidence);
  std::vector<double> lse, mean, kl_U_p, kl_p_U;
  for (size_t i = 0; i < lp.size(); ++i) {
    lse.push_back(raw[i] / temperature - lp[i]);
    mean.push_back(lse[i] - C[i]);
    kl_U_p.push_back(C[i] - log_v);
    kl_p_U.push_back(log_v - H[i]);
  }
  for (auto& [key, got] : std::vector<std::pair<std::string, std::vector<double>>>{{"logp", lp},
                                                                                   {"chosen_logit_raw", raw},
                                                                                   {"entropy", H},
                                                                                   {"confidence", C},
                                                                                   {"lse", lse},
                                                                                   {"mean_logit", mean},
                                                                                   {"kl_U_p", kl_U_p},
                                                                                   {"kl_p_U", kl_p_U}}) {
    run.numbers_are(key, got);
  }
  at::Tensor loss = at::zeros({}, at::kFloat);
  for (auto [key, signal] :
       {std::pair{"g_logp", &stats.logprob}, {"g_entropy", &stats.entropy}, {"g_confidence", &stats.confidence}}) {
    if (run.has(key)) loss = loss + (vector_of(floats(run, key)) * *signal).sum();
  }
  run.number_is("loss", loss.item<double>());
  if (!run.wants("dh") && !run.wants("dW")) return;
  loss.backward();
  run.numbers_are("dh", numbers(h.grad()));
  run.numbers_are("dW", numbers(w.grad()));
}

void check_lm_head(CaseRun& run) {
  for (MakeHead make_head : {make_native_head, make_aten_head}) check_head(run, make_head);
}

// expected.steps: after each gradient, the norm before clipping and the parameters.
void check_adamw(CaseRun& run) {
  OptimizerConfig config;
  config.lr = run.number("lr");
  config.weight_decay = run.number("wd", 0);
  config.beta1 = run.number("b1", 0.9);
  config.beta2 = run.number("b2", 0.999);
  config.eps = run.number("eps", 1e-8);
  config.grad_clip = run.number("clip", 0);
  at::Tensor p = vector_of(floats(run, "p")).set_requires_grad(true);
  Optimizer adam({{"p", p}}, config);
  const Json &gradients = run.in("grads"), &steps = run.expected("steps");
  if (gradients.size() != steps.size()) throw Error(ErrorKind::schema, "as many grads as steps expected");
  for (size_t s = 0; s < steps.size(); ++s) {
    std::vector<double> g = flat(gradients[s], "inputs.grads");
    p.mutable_grad() = vector_of({g.begin(), g.end()}).view_as(p);
    StepResult result = adam.step(config.lr);
    for (const auto& [key, want] : steps[s].items()) {
      std::string what = str("steps[", s, "].", key);
      if (key == "grad_norm") {
        run.report().close(what, result.grad_norm, want.get<double>());
      } else if (key == "p") {
        run.report().close(what, numbers(p), want);
      } else if (key == "m" || key == "v") {
        for (const NamedTensor& moment : adam.state()) {
          if (moment.name == (key == "m" ? "exp_avg/p" : "exp_avg_sq/p")) {
            run.report().close(what, numbers(moment.tensor), want);
          }
        }
      } else {
        run.report().fail(str("nothing compares ", what));
      }
    }
  }
}

void check_learning_rate(CaseRun& run) {
  OptimizerConfig config;
  config.lr = run.number("lr");
  config.warmup_steps = static_cast<int64_t>(run.number("warmup", 0));
  config.min_lr_ratio = run.number("min_lr_ratio", 0);
  if (run.variant().find("cosine") != std::string::npos) config.schedule = Schedule::cosine;
  auto total = static_cast<int64_t>(run.number("total_steps", run.number("total", 0)));
  std::vector<double> factor, rate;
  for (double step : flat(run.in("steps"), "inputs.steps")) {
    rate.push_back(rollout_lr(config, static_cast<int64_t>(step), total));
    factor.push_back(rate.back() / config.lr);
  }
  run.numbers_are("factor", factor);
  run.numbers_are("lr", rate);
}

const AddCaseKinds kEngine{{{"lm-head", check_lm_head}, {"adamw", check_adamw}, {"lr", check_learning_rate}}};

}  // namespace

}  // namespace ucas::testing

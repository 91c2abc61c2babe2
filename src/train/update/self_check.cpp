#include "train/update/self_check.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

// The definitions of kernels/lm_head written down literally, in double precision over whole rows.
HeadStats materialised(const at::Tensor& hidden, const at::Tensor& lm_head, const std::vector<int32_t>& target,
                       double temperature) {
  const at::Tensor rows = hidden.to(lm_head.scalar_type()).to(at::kFloat);  // as GEMMs read them
  at::Tensor raw = at::matmul(rows, lm_head.to(at::kFloat).t()).to(at::kDouble);
  at::Tensor z = at::div(raw, temperature), lse = at::logsumexp(z, {1});
  std::vector<int64_t> ids(target.begin(), target.end());
  at::Tensor index = at::tensor(ids, at::kLong).to(hidden.device()).unsqueeze(1);
  at::Tensor p = at::exp(at::sub(z, lse.unsqueeze(1)));
  HeadStats s;
  s.logprob = at::sub(at::gather(z, 1, index).squeeze(1), lse);
  s.entropy = at::sub(lse, at::sum(at::mul(p, z), {1}));
  s.confidence = at::sub(lse, at::mean(z, {1}));
  s.logit = at::gather(raw, 1, index).squeeze(1);
  return s;
}

// The larger one; NaN if either is, which std::max would drop.
double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double largest(const at::Tensor& values) { return at::max(at::abs(values.detach().to(at::kDouble))).item<double>(); }

at::Tensor gradient(const HeadStats& s, const at::Tensor& hidden) {
  at::Tensor root =
      at::add(at::sum(s.logprob), at::add(at::mul(at::sum(s.entropy), 0.5), at::mul(at::sum(s.confidence), 0.25)));
  root.backward();
  at::Tensor g = hidden.grad().clone();
  hidden.mutable_grad() = at::Tensor();
  return g;
}

}  // namespace

HeadCheck check_head(Model& model, const std::vector<int32_t>& prompt, double temperature) {
  auto rows = std::min<int64_t>(8, static_cast<int64_t>(prompt.size()));
  Packed packed;
  packed.append(std::span(prompt).first(rows));
  at::Tensor hidden;
  {
    at::NoGradGuard no_grad;
    hidden = model.hidden(packed).detach().clone();
  }
  hidden.requires_grad_(true);
  const Matrix& own = model.head().weight();
  const Matrix weight{own.leaf.detach(), own.compute};  // it gets no gradient from this
  std::vector<int32_t> target = packed.token;
  HeadStats fused = model.head().over(weight)->stats(hidden, target, temperature);
  at::Tensor fused_gradient = gradient(fused, hidden);
  HeadStats plain = materialised(hidden, weight.compute, target, temperature);
  at::Tensor plain_gradient = gradient(plain, hidden);

  HeadCheck check;
  for (auto [a, b] : {std::pair(&fused.logprob, &plain.logprob), std::pair(&fused.entropy, &plain.entropy),
                      std::pair(&fused.confidence, &plain.confidence), std::pair(&fused.logit, &plain.logit)}) {
    check.value_difference = worse(check.value_difference, largest(at::sub(*a, *b)));
  }
  check.gradient_difference = largest(at::sub(fused_gradient, plain_gradient)) / worse(1e-12, largest(plain_gradient));
  if (!std::isfinite(check.value_difference) || !std::isfinite(check.gradient_difference)) {
    throw Error(ErrorKind::numeric,
                "start-up check: the model's logits for the first prompt, or their gradients, are not finite: its "
                "weights are, but they overflow on the way; use another checkpoint (or a higher rollout.temperature, "
                "if it is far below 1)",
                kNumeric);
  }
  // The rounding of the logits is divided by the temperature as the logits are.
  const double limit = 1e-3 / std::min(1.0, temperature);
  // In bf16 the gradient of a logit is rounded to 8 bits before it is summed.
  const double gradient_limit = model.options().dtype == Dtype::bf16 ? 20 * limit : limit;
  if (check.value_difference > limit || check.gradient_difference > gradient_limit) {
    throw Error(ErrorKind::numeric,
                str("start-up check: the LM-head statistics differ from a plain computation by ",
                    check.value_difference, " (values) and ", check.gradient_difference, " (gradient), at most ", limit,
                    " expected; try UCAS_ISA=scalar, and please report it"),
                kNumeric);
  }
  return check;
}

}  // namespace ucas

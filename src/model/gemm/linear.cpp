#include "model/gemm/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace ucas {

namespace {

// x A^T of all parts [P, R]
at::Tensor lowered(const at::Tensor& x, const at::Tensor& a_compute) {
  at::Tensor low = at::empty({x.size(0), a_compute.size(0)}, x.options());
  gemm(x, a_compute, low);
  return low;
}

// An adapter's columns of it.
at::Tensor columns_of(const at::Tensor& low, const Adapter& adapter) {
  return low.narrow(1, adapter.first, adapter.a.size(0));
}

}  // namespace

at::Tensor gradient_of(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.defined()) gradient = at::zeros_like(parameter.detach());
  return gradient;
}

void Adapter::refresh() const {
  if (!on()) return;
  for (const Bf16Copy& copy : copies()) copy.refresh();
}

bool Linear::trains() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& p) { return p.weight.requires_grad() || p.adapter.trains(); });
}

bool Linear::trains_bias() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& p) { return p.bias.defined() && p.bias.requires_grad(); });
}

void Linear::forward(const at::Tensor& x, const at::Tensor& out) const {
  gemm(x, weight, out);
  add_adapters(x, out);
}

void Linear::forward_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& out) const {
  gemm(x, weight, out, residual);
  add_adapters(x, out);
}

void Linear::add_adapters(const at::Tensor& x, const at::Tensor& out) const {
  if (!a_compute.defined()) return;
  const at::Tensor low = lowered(x, a_compute);
  for (const Part& p : parts) {
    if (!p.adapter.on()) continue;
    const at::Tensor own = out.narrow(1, p.first, p.count);
    gemm(columns_of(low, p.adapter), p.adapter.b_compute, own, own);
  }
}

at::Tensor Linear::part(size_t index, const at::Tensor& x) const {
  const Part& p = parts[index];
  auto as = [&](const at::Tensor& parameter) { return parameter.to(x.scalar_type()); };
  at::Tensor y = p.bias.defined() ? at::linear(x, as(p.weight), as(p.bias)) : at::linear(x, as(p.weight));
  if (!p.adapter.on()) return y;
  return y + at::linear(at::linear(x, as(p.adapter.a)), as(p.adapter.b * p.adapter.scale));
}

at::Tensor Linear::backward_low(const at::Tensor& d_out) const {
  if (!a_compute.defined()) return {};
  at::Tensor d_low = at::zeros({d_out.size(0), a_compute.size(0)}, d_out.options());
  for (const Part& p : parts) {
    if (p.adapter.on())
      gemm_input_gradient(d_out.narrow(1, p.first, p.count), p.adapter.b_compute, columns_of(d_low, p.adapter));
  }
  return d_low;
}

void Linear::backward_input(const at::Tensor& d_out, const at::Tensor& d_low, const at::Tensor& d_x) const {
  gemm_input_gradient(d_out, weight, d_x);
  if (d_low.defined()) gemm_input_gradient(d_low, a_compute, d_x, Into::sum);
}

void Linear::backward_weight(const at::Tensor& x, const at::Tensor& d_out, const at::Tensor& d_low,
                             const at::Tensor& d_bias) const {
  const bool adapts = std::ranges::any_of(parts, [](const Part& p) { return p.adapter.trains(); });
  at::Tensor low, d_a;
  if (adapts) {
    low = lowered(x, a_compute);
    d_a = at::zeros({a_compute.size(0), a_compute.size(1)}, a_compute.options().dtype(at::kFloat));
    gemm_weight_gradient(d_low, x, d_a);
  }
  for (const Part& p : parts) {
    const at::Tensor d_own = d_out.narrow(1, p.first, p.count);
    if (p.weight.requires_grad()) gemm_weight_gradient(d_own, x, gradient_of(p.weight));
    if (p.bias.defined() && p.bias.requires_grad()) gradient_of(p.bias).add_(d_bias.narrow(0, p.first, p.count));
    if (!p.adapter.trains()) continue;
    gradient_of(p.adapter.a).add_(d_a.narrow(0, p.adapter.first, p.adapter.a.size(0)));
    at::Tensor d_b = at::zeros_like(p.adapter.b.detach());  // of b_compute
    gemm_weight_gradient(d_own, columns_of(low, p.adapter), d_b);
    gradient_of(p.adapter.b).add_(d_b, p.adapter.scale);
  }
}

}  // namespace ucas

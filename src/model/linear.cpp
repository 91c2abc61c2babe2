#include "model/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace ucas {

namespace {

// x A^T [P, rank]
at::Tensor lowered(const Adapter& adapter, const at::Tensor& x) {
  at::Tensor low = at::empty({x.size(0), adapter.a.size(0)}, x.options());
  product(x, adapter.a_used, low);
  return low;
}

}  // namespace

at::Tensor gradient_of(const at::Tensor& leaf) {
  at::Tensor& gradient = leaf.mutable_grad();
  if (!gradient.defined()) gradient = at::zeros_like(leaf.detach());
  return gradient;
}

void Adapter::refresh() const {
  if (!on()) return;
  for (const NarrowCopy& copy : copies()) copy.refresh();
}

bool Linear::trains() const {
  return std::any_of(parts.begin(), parts.end(), [](const Part& p) {
    return p.weight.requires_grad() || (p.adapter.on() && p.adapter.a.requires_grad());
  });
}

bool Linear::trains_bias() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& p) { return p.bias.defined() && p.bias.requires_grad(); });
}

void Linear::forward(const at::Tensor& x, const at::Tensor& out) const {
  product(x, weight, out);
  for (const Part& p : parts) {
    if (!p.adapter.on()) continue;
    const at::Tensor own = out.narrow(1, p.first, p.count);
    product(lowered(p.adapter, x), p.adapter.b_used, own, own);
  }
}

void Linear::forward_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& out) const {
  product(x, weight, out, residual);
  for (const Part& p : parts) {
    if (p.adapter.on()) product(lowered(p.adapter, x), p.adapter.b_used, out, out);
  }
}

at::Tensor Linear::part(size_t index, const at::Tensor& x) const {
  const Part& p = parts[index];
  auto as = [&](const at::Tensor& leaf) { return leaf.to(x.scalar_type()); };
  at::Tensor y = p.bias.defined() ? at::linear(x, as(p.weight), as(p.bias)) : at::linear(x, as(p.weight));
  if (!p.adapter.on()) return y;
  return y + at::linear(at::linear(x, as(p.adapter.a)), as(p.adapter.b * p.adapter.scale));
}

void Linear::backward_input(const at::Tensor& d_out, const at::Tensor& d_x) const {
  input_product(d_out, weight, d_x);
  for (const Part& p : parts) {
    if (!p.adapter.on()) continue;
    at::Tensor d_low = at::empty({d_out.size(0), p.adapter.a.size(0)}, d_out.options());
    input_product(d_out.narrow(1, p.first, p.count), p.adapter.b_used, d_low);
    input_product(d_low, p.adapter.a_used, d_x, Into::sum);
  }
}

void Linear::backward_weight(const at::Tensor& x, const at::Tensor& d_out, const at::Tensor& d_bias) const {
  for (const Part& p : parts) {
    const at::Tensor d_own = d_out.narrow(1, p.first, p.count);
    if (p.weight.requires_grad()) weight_product(d_own, x, gradient_of(p.weight));
    if (p.bias.defined() && p.bias.requires_grad()) gradient_of(p.bias).add_(d_bias.narrow(0, p.first, p.count));
    if (!p.adapter.on() || !p.adapter.a.requires_grad()) continue;
    at::Tensor d_low = at::empty({d_out.size(0), p.adapter.a.size(0)}, d_out.options());
    input_product(d_own, p.adapter.b_used, d_low);
    weight_product(d_low, x, gradient_of(p.adapter.a));
    at::Tensor d_b = at::zeros_like(p.adapter.b.detach());  // of b_used
    weight_product(d_own, lowered(p.adapter, x), d_b);
    gradient_of(p.adapter.b).add_(d_b, p.adapter.scale);
  }
}

}  // namespace ucas

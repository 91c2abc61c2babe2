#include "model/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>

#include <algorithm>

namespace ucas {

bool Linear::trains() const {
  return std::any_of(parts.begin(), parts.end(), [](const Part& p) {
    return p.weight.requires_grad() || (p.bias.defined() && p.bias.requires_grad());
  });
}

void Linear::forward(const at::Tensor& x, at::Tensor& out) const { at::mm_out(out, x, weight.t()); }

void Linear::forward_onto(const at::Tensor& residual, const at::Tensor& x, at::Tensor& out) const {
  at::addmm_out(out, residual, x, weight.t());
}

at::Tensor Linear::part(size_t index, const at::Tensor& x) const {
  const Part& p = parts[index];
  return p.bias.defined() ? at::linear(x, p.weight, p.bias) : at::linear(x, p.weight);
}

void Linear::backward_input(const at::Tensor& d_out, at::Tensor& d_x) const { at::mm_out(d_x, d_out, weight); }

void Linear::backward_weight(const at::Tensor& x, const at::Tensor& d_out, const at::Tensor& d_bias,
                             Gradients& out) const {
  if (!trains()) return;
  at::Tensor d_weight = at::mm(d_out.t(), x);
  int64_t first = 0;
  for (const Part& p : parts) {
    int64_t count = p.weight.size(0);
    out.of(p.weight) = d_weight.narrow(0, first, count);
    if (p.bias.defined()) out.of(p.bias) = d_bias.narrow(0, first, count);
    first += count;
  }
}

}  // namespace ucas

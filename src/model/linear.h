// A matrix product of the block with its parameters, y = x W^T (+ b), forward and backward. Its leaf parameters (q, k
// and v; gate and up) lie side by side in one storage, so that they are one product. Whatever changes such a product
// for a part of a model (an adapter, a packed copy) belongs here.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "model/model.h"

namespace ucas {

// Gradients by the leaf they belong to, so that no order of parameters is written down twice.
class Gradients {
 public:
  at::Tensor& of(const at::Tensor& leaf) { return list_[leaf.unsafeGetTensorImpl()]; }  // undefined until it is set

 private:
  std::unordered_map<const void*, at::Tensor> list_;
};

struct Linear {
  struct Part {
    at::Tensor weight, bias;  // leaves, rows of those below; no bias: undefined
  };
  at::Tensor weight, bias;  // [out, in] and [out], without gradient
  std::vector<Part> parts;

  bool trains() const;  // any of its leaves

  // out = x W^T, without the bias: that goes with what is done to the rows next.
  void forward(const at::Tensor& x, at::Tensor& out) const;
  // out = residual + x W^T
  void forward_onto(const at::Tensor& residual, const at::Tensor& x, at::Tensor& out) const;
  // One part by itself, in operations that autograd follows.
  at::Tensor part(size_t index, const at::Tensor& x) const;

  // From d_out = d loss / d out, all rows of which count (padding is 0): d_x = d loss / d x,
  void backward_input(const at::Tensor& d_out, at::Tensor& d_x) const;
  // and that of the parameters which are trained; d_bias [out] where there is a bias.
  void backward_weight(const at::Tensor& x, const at::Tensor& d_out, const at::Tensor& d_bias, Gradients& out) const;
};

}  // namespace ucas

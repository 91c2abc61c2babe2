// A GEMM of the block with its parameters, y = x W^T (+ b), forward and backward. Its parameters (q, k and v; gate and
// up) are rows of one matrix, so that they are one GEMM. Whatever changes such a GEMM for a part of a model (an
// adapter, a packed copy) belongs here.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/gemm/gemm.h"
#include "model/tensor/bf16_copy.h"

namespace ucas {

// The f32 gradient of a parameter, zeros if undefined. Backward passes accumulate in place: a second copy of all
// gradients never exists.
at::Tensor gradient_of(const at::Tensor& parameter);

// The low-rank addition of one part: y += (x A^T) B^T. Leaves are f32, their copies what GEMMs read.
struct Adapter {
  at::Tensor a, b;  // parameters [rank, in] and [out, rank]; undefined: none
  at::Tensor a_compute,
      b_compute;      // the same in the rows' type, b times alpha / rank; a_compute is of Linear::a_compute
  int64_t first = 0;  // its rows there
  double scale = 1;   // alpha / rank
  bool on() const { return a.defined(); }
  bool trains() const { return on() && a.requires_grad(); }
  std::vector<Bf16Copy> copies() const { return {{a, a_compute}, {b, b_compute, scale}}; }
  void refresh() const;  // the parameters have changed
};

struct Linear {
  struct Part {
    at::Tensor weight, bias;  // parameters; no bias: undefined
    Adapter adapter;
    int64_t first = 0, count = 0;  // its outputs
  };
  at::Tensor weight;     // [out, in] as GEMMs read it: the parameters themselves, or their copies in bf16
  at::Tensor bias;       // [out] f32, without gradient
  at::Tensor a_compute;  // [R, in] A of all parts' adapters, side by side as well; undefined: none has one
  std::vector<Part> parts;

  bool trains() const;  // anything of it
  bool trains_bias() const;

  // out = x W^T, without the bias: that goes with what is done to the rows next.
  void forward(const at::Tensor& x, const at::Tensor& out) const;
  // out = residual + x W^T, f32
  void forward_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& out) const;
  // One part by itself, in operations that autograd follows.
  at::Tensor part(size_t index, const at::Tensor& x) const;

  // From d_out = d loss / d out, all rows of which count (padding is 0): d loss / d (x A^T) [P, R], which both of the
  // following want; undefined without adapters.
  at::Tensor backward_low(const at::Tensor& d_out) const;
  // d_x = d loss / d x,
  void backward_input(const at::Tensor& d_out, const at::Tensor& d_low, const at::Tensor& d_x) const;
  // and that of the parameters which are trained; d_bias [out] where there is a bias.
  void backward_weight(const at::Tensor& x, const at::Tensor& d_out, const at::Tensor& d_low,
                       const at::Tensor& d_bias) const;

 private:
  void add_adapters(const at::Tensor& x, const at::Tensor& out) const;
};

}  // namespace ucas

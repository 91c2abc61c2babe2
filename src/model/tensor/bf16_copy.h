// A bf16 model keeps an f32 master of each parameter that is trained, and a bf16 copy that its GEMMs read. Among ranks
// that shard the optimizer, a rank drops the masters that other ranks update (sharding/sharded_gradients.h). A tensor
// whose values are dropped keeps its shape, its type and its gradient; reading it throws LibTorch's exception.
#pragma once

#include <ATen/core/Tensor.h>

namespace ucas {

struct Bf16Copy {
  at::Tensor master, compute;
  double scale = 1;      // compute = master * scale, rounded
  void refresh() const;  // if both have values
};

bool has_values(const at::Tensor& tensor);
// Of a tensor that has its storage to itself, for all who share it: gives its memory back, or takes as much again.
void drop_values(const at::Tensor& tensor);
void allocate_values(const at::Tensor& tensor);

}  // namespace ucas

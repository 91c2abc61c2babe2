// An f32 parameter that products read through a copy in another type, and whether its own values are there: a rank that
// another one updates a parameter for keeps the copy alone (train/shared_masters.h). A tensor without values keeps its
// shape, its type and its gradient; whoever reads it is told by an exception of LibTorch's.
// Threads: one caller.
#pragma once

#include <ATen/core/Tensor.h>

namespace ucas {

struct NarrowCopy {
  at::Tensor leaf, used;
  double scale = 1;      // used = leaf * scale, rounded
  void refresh() const;  // if the leaf has values
};

bool has_values(const at::Tensor& tensor);
// Of a tensor that has its storage to itself, for all who share it: gives its memory back, or takes as much again.
void drop_values(const at::Tensor& tensor);
void make_room(const at::Tensor& tensor);

}  // namespace ucas

// f32 master weights of a bf16 model, sharded over ranks: each rank keeps the masters of the parameters that it
// updates, about 1 / size of them, and the bf16 weights of all. After an update the owner broadcasts its weights
// rounded to bf16: two bytes an element, and the bits of one process. Borrows ranks; shares the tensors with their
// model. All ranks call, in order.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "sharding/ranks.h"

namespace ucas {

class ShardedMasters {
 public:
  // `copies` (Model::bf16_copies()) of some of `parameters`, whose owners `owners` says. All values stay where they
  // are until release().
  ShardedMasters(Ranks& ranks, const std::vector<NamedTensor>& parameters, const std::vector<int64_t>& owners,
                 const std::vector<Bf16Copy>& copies);

  bool has(const at::Tensor& leaf) const;
  // Broadcasts the bf16 weights of each owner.
  void broadcast_weights() const;
  // Gathers all masters on rank 0, until release(): for files.
  void gather() const;
  // The masters of other ranks take no memory here any more.
  void release() const;

 private:
  Ranks& ranks_;
  std::vector<std::vector<Bf16Copy>> owned_;  // by rank
};

}  // namespace ucas

// f32 master weights of a bf16 model, sharded over ranks: each rank keeps the masters of the parameters that it
// updates, about 1 / size of them, and the bf16 weights of all. After an update the owner broadcasts its weights
// rounded to bf16: two bytes an element, and the bits of one process. No rank ever has all masters: for files rank 0
// asks for one after another. Borrows ranks; shares the tensors with their model. All ranks call, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/stored.h"
#include "sharding/ranks.h"

namespace ucas {

// By parameter, the rank that keeps its moments, its master and maybe its gradient, and updates it: of `ranks` about as
// many elements each. A function of the shapes alone.
std::vector<int64_t> owners_of(const std::vector<NamedTensor>& parameters, int64_t ranks);
// For load_model(): the masters that this rank of so many will own. Null where it is alone.
KeptMasters own_masters(int64_t rank, int64_t ranks);

class ShardedMasters {
 public:
  // `copies` (Model::bf16_copies()) of some of `parameters`, whose owners `owners` says. Masters of other ranks take no
  // memory here any more.
  ShardedMasters(Ranks& ranks, const std::vector<NamedTensor>& parameters, const std::vector<int64_t>& owners,
                 const std::vector<Bf16Copy>& copies);

  bool has(const at::Tensor& leaf) const;
  // Broadcasts the bf16 weights of each owner.
  void broadcast_weights() const;
  // For files. On rank 0 runs `work`, which asks for the masters of others: their owners broadcast each, part by part.
  // Throws what `work` throws. `own`: values of those that are here.
  void lend(const std::function<void(const MasterValues&)>& work, const MasterValues& own) const;

 private:
  std::pair<int64_t, int64_t> place_of(const at::Tensor& leaf) const;
  void answer(const MasterValues& own) const;
  void lend_one(int64_t owner, int64_t count, const at::Tensor& values) const;

  Ranks& ranks_;
  std::vector<std::vector<Bf16Copy>> owned_;  // by rank
};

}  // namespace ucas

// Gradients of which each rank keeps those of the parameters that it owns, and a hook that brings them there.
// By sums (ZeRO-2) a backward pass has those of one block at a time, beside those of what stands outside of the blocks;
// when it leaves the block its owners add what all ranks have of it to what they keep.
// By micro-batches each pass begins at zero, beside what was added up so far, and owners add those of the ranks in
// their order: block by block (ZeRO-2, and one process), or all after the pass (ZeRO-1), when all owners receive at
// once. Borrows model and ranks, which no one else calls during a pass; watches the model's backward passes as long as
// it lives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/model_options.h"
#include "model/model.h"
#include "model/stored.h"
#include "sharding/ranks.h"
#include "train/update/config.h"

namespace ucas {

// f32 master weights of a bf16 model, sharded over ranks: each rank keeps the masters of the parameters that it
// updates, about 1 / size of them, and the bf16 weights of all. After an update the owner broadcasts its weights
// rounded to bf16: two bytes an element, and the bits of one process. No rank ever has all masters: for files rank 0
// asks for one after another. Borrows ranks; shares the tensors with their model. All ranks call, in order.

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

class ShardedGradients final : public BackwardHook {
 public:
  struct How {
    Reduce reduce = Reduce::sum;
    Shard shard = Shard::gradients;
  };
  // `owners`, by parameter: who keeps its gradient and its moments (Optimizer::owners()); empty: rank 0. `parameters`
  // are the model's, maybe not all, and maybe some beside it.
  ShardedGradients(Model& model, std::span<const NamedTensor> parameters, std::span<const int64_t> owners, Ranks& ranks,
                   const How& how);
  ~ShardedGradients() override;
  ShardedGradients(const ShardedGradients&) = delete;
  ShardedGradients& operator=(const ShardedGradients&) = delete;

  // Before the passes of an update: those that are kept here are defined.
  void begin();
  // Every rank's pass at once; those from rank `givers` on have no `work` and add nothing.
  void pass(const std::function<void()>& work, int64_t givers);

  void before(size_t layer) override;
  void after(size_t layer) override;

 private:
  struct Leaf {
    at::Tensor parameter;
    int64_t owner;
    at::Tensor sum;  // while a pass by micro-batches is under way: of those before it, at the owner
  };
  using Leaves = std::vector<Leaf>;
  bool mine(const Leaf& leaf) const { return leaf.owner == ranks_.rank(); }
  using OfOwners = std::vector<std::vector<at::Tensor>>;
  OfOwners by_owner(const Leaves& leaves) const;
  void set_aside(Leaves& leaves);
  void give(Leaves& leaves);
  at::Tensor scratch_for(const at::Tensor& parameter);

  Model& model_;
  Ranks& ranks_;
  const How how_;
  std::vector<Leaves> layers_;  // none where the model's backward does not tell, or need not
  Leaves rest_;
  std::map<std::vector<int64_t>, std::vector<at::Tensor>> scratch_;  // by shape, what no pass is using
  int64_t givers_ = 0;                                               // 0: no pass is under way
};

}  // namespace ucas

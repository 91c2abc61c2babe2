// Gradients sharded by owner of the parameter, and the backward hook that reduces them to their owners.
// With sums (ZeRO-2) a backward pass holds the gradients of one block at a time, and those outside of the blocks; after
// a block its owners add the sum over all ranks to the gradients they keep.
// By micro-batches each pass begins at zero, apart from the sum so far, and owners add the gradients of the ranks in
// rank order: block by block (ZeRO-2, and one process), or after the pass (ZeRO-1), when all owners receive at once.
// Borrows model and ranks, which no other caller uses during a pass; its hook is installed as long as it lives.
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
// rounded to bf16: two bytes an element, bit-identical to one process. No rank ever has all masters: to write files
// rank 0 requests them one by one. Borrows ranks; shares the tensors with their model. All ranks call, in order.

// By parameter, the rank that owns its moments, its master and maybe its gradient, and updates it: of `ranks` about as
// many elements each. A function of the shapes alone.
std::vector<int64_t> owners_of(const std::vector<NamedTensor>& parameters, int64_t ranks);
// For load_model(): the masters that this rank of `ranks` will own. Null for one rank.
KeptMasters own_masters(int64_t rank, int64_t ranks);

class ShardedMasters {
 public:
  // `copies` (Model::bf16_copies()) of some of `parameters`, owned by `owners`. Frees the masters of other ranks here.
  ShardedMasters(Ranks& ranks, const std::vector<NamedTensor>& parameters, const std::vector<int64_t>& owners,
                 const std::vector<Bf16Copy>& copies);

  bool has(const at::Tensor& parameter) const;
  // Broadcasts the bf16 weights of each owner.
  void broadcast_weights() const;
  // For files. On rank 0 runs `work`, which requests the masters of others: their owners broadcast each, part by part.
  // Throws what `work` throws. `own`: values of this rank's masters.
  void lend(const std::function<void(const MasterValues&)>& work, const MasterValues& own) const;

 private:
  std::pair<int64_t, int64_t> place_of(const at::Tensor& parameter) const;
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
  // `owners`, by parameter: the rank of its gradient and its moments (Optimizer::owners()); empty: rank 0. `parameters`
  // are some or all of the model's, and maybe others.
  ShardedGradients(Model& model, std::span<const NamedTensor> parameters, std::span<const int64_t> owners, Ranks& ranks,
                   const How& how);
  ~ShardedGradients() override;
  ShardedGradients(const ShardedGradients&) = delete;
  ShardedGradients& operator=(const ShardedGradients&) = delete;

  // Before the passes of an update: those that are kept here are defined.
  void begin();
  // Every rank's pass at once; those from rank `contributors` on have no `work` and add nothing.
  void pass(const std::function<void()>& work, int64_t contributors);

  void before(size_t layer) override;
  void after(size_t layer) override;

 private:
  struct Entry {
    at::Tensor parameter;
    int64_t owner;
    at::Tensor sum;  // during a pass by micro-batches: of those before it, at the owner
  };
  using Entries = std::vector<Entry>;
  bool mine(const Entry& entry) const { return entry.owner == ranks_.rank(); }
  using OfOwners = std::vector<std::vector<at::Tensor>>;
  OfOwners by_owner(const Entries& entries) const;
  void begin_micro(Entries& entries);
  void reduce_to_owners(Entries& entries);
  at::Tensor scratch_for(const at::Tensor& parameter);

  Model& model_;
  Ranks& ranks_;
  const How how_;
  std::vector<Entries> layers_;  // none where the model's backward calls no hook, or need not
  Entries rest_;
  std::map<std::vector<int64_t>, std::vector<at::Tensor>> scratch_;  // by shape, what no pass is using
  int64_t contributors_ = 0;                                         // 0: no pass is active
};

}  // namespace ucas

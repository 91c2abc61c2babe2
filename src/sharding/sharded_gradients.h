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
#include <vector>

#include "core/model_options.h"
#include "model/model.h"
#include "sharding/ranks.h"
#include "train/update/config.h"

namespace ucas {

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

// Gradients of which each rank keeps those of the parameters whose moments it keeps (ZeRO-2). A backward pass has those
// of one block at a time, beside those of what stands outside of the blocks; when it leaves the block they go to who
// keeps them. By sums all ranks make a pass each at the same time; in order they pass one after the other, each from
// what the ones before have left: the bits of one process.
// Borrows model, optimizer and ranks; watches the model's backward passes as long as it lives.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/backward_hook.h"
#include "model/model.h"
#include "sharding/ranks.h"
#include "train/optimizer/optimizer.h"

namespace ucas {

class ShardedGradients final : public BackwardHook {
 public:
  // After optimizer.shard_over(ranks, Shared::gradients).
  ShardedGradients(Model& model, const Optimizer& optimizer, Ranks& ranks);
  ~ShardedGradients() override;
  ShardedGradients(const ShardedGradients&) = delete;
  ShardedGradients& operator=(const ShardedGradients&) = delete;

  // Before the passes of an update: those that are kept here are defined.
  void begin();
  // Every rank's pass at once; without `work` this one adds nothing.
  void pass(const std::function<void()>& work);
  // The pass of one rank, whose `work` alone is called.
  void pass_of(int64_t rank, const std::function<void()>& work);

  void before(size_t layer) override;
  void after(size_t layer) override;

 private:
  struct Leaf {
    at::Tensor parameter;
    int64_t owner;
  };
  using Leaves = std::vector<Leaf>;
  bool mine(const Leaf& leaf) const { return leaf.owner == ranks_.rank(); }
  std::vector<at::Tensor> gradients_of(const Leaves& leaves, int64_t owner) const;
  void bring(const Leaves& leaves) const;
  void take(const Leaves& leaves) const;

  Model& model_;
  Ranks& ranks_;
  std::vector<Leaves> layers_;  // none where the model's backward does not tell
  Leaves rest_;
  int64_t turn_ = -1;  // whose pass it is; -1: everyone's
};

}  // namespace ucas

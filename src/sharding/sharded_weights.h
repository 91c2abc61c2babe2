// The matrices of blocks of which each rank keeps its share, about 1 / size, while it scores and updates (ZeRO-3).
// Before a block's forward, and before its backward, all ranks get the whole block from those who keep parts of it; the
// block before gives its memory back then. On CPUs a thread gets the next block of a pass while the present one is
// computed. So at most two blocks are whole, elsewhere one. A matrix that is trained is kept as the leaf
// of the rank that updates it (owners_of()), which makes what GEMMs read of it: no second copy, and after an update
// nothing travels until the block is needed. Of a frozen matrix each rank keeps as many neighbouring elements.
// Embedding, LM head, norms, biases and adapters stay whole. Sampling takes all blocks at once, between gather() and
// drop(); so does what is read and written before the first drop().
// Calls go by a channel of their own (Ranks::open_channel()), so that gradients may travel beside them. Borrows the
// model, which asks it for blocks as long as it lives. All ranks ask for the same blocks in the same order, and which
// one is got ahead follows from that alone: calls keep their order. A rank without a pass accompanies those of the
// others (Model::accompany_forward()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "model/block_weights.h"
#include "model/gemm/linear.h"
#include "model/model.h"
#include "sharding/ranks.h"

namespace ucas {

class ShardedWeights final : public BlockWeights {
 public:
  // All matrices are here until drop(). The leaves of `model` lie apart where they are trained
  // (ModelOptions::blocks_apart). `without_leaves`: in bf16 their values may be elsewhere
  // (train/optimizer/host_state.h), so that the share is kept as GEMMs read it. Error(ErrorKind::config) where the
  // model keeps what passes read.
  ShardedWeights(Model& model, std::unique_ptr<Ranks> channel, bool without_leaves);
  ~ShardedWeights() override;
  ShardedWeights(const ShardedWeights&) = delete;
  ShardedWeights& operator=(const ShardedWeights&) = delete;

  void gather();
  void drop();
  void need(size_t layer, bool back) override;
  void changed() override;

  // Model::bf16_copies() for an optimizer that keeps the leaves' values elsewhere: of blocks what this rank keeps.
  std::vector<Bf16Copy> kept_copies();
  // Bytes that travelled for blocks so far, as Ranks::bytes() counts. Between passes.
  int64_t bytes() const { return channel_->bytes(); }

 private:
  struct Piece {
    at::Tensor whole;  // [rows, in] as GEMMs read it
    at::Tensor leaf;   // of one that is trained
    int64_t owner;     // who keeps all of it; -1: a share each
    at::Tensor kept;   // what is here while `whole` is not; undefined: made of the leaf
  };
  struct Block {
    std::vector<at::Tensor> matrices;
    std::vector<Piece> pieces;
  };
  void add(Block& block, const Linear& linear, bool without_leaves);
  bool mine(const Piece& piece) const { return piece.owner == channel_->rank(); }
  at::Tensor share_of_frozen(const Piece& piece, int64_t rank) const;
  void keep(Block& block);
  void fill(const Block& block);
  static void give_back(const Block& block);
  size_t none() const { return blocks_.size(); }
  void get_ahead(size_t layer);
  size_t land();

  Model& model_;
  const std::unique_ptr<Ranks> channel_;
  std::vector<Block> blocks_;
  std::vector<std::pair<at::Tensor, int64_t>> owners_;  // of trained leaves
  bool all_ = true, kept_ = false;
  size_t here_, ahead_;          // the block that is whole, and the one that is on its way; none()
  std::future<void> under_way_;  // last: it ends before what it uses
};

// All blocks as long as it lives; null: they are there anyway.
class WholeWeights {
 public:
  explicit WholeWeights(ShardedWeights* weights) : weights_(weights) {
    if (weights_ != nullptr) weights_->gather();
  }
  ~WholeWeights() {
    if (weights_ != nullptr) weights_->drop();
  }
  WholeWeights(const WholeWeights&) = delete;
  WholeWeights& operator=(const WholeWeights&) = delete;

 private:
  ShardedWeights* const weights_;
};

}  // namespace ucas

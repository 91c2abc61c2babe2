#include "sharding/sharded_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/gemm/linear.h"
#include "model/weights.h"
#include "sharding/beside.h"
#include "sharding/sharded_masters.h"

namespace ucas {

namespace {

constexpr const char* kGathering = "gathering the weights of a block";

at::Tensor flat(const at::Tensor& whole) { return whole.detach().view({-1}); }

}  // namespace

ShardedWeights::ShardedWeights(Model& model, std::unique_ptr<Ranks> channel, bool without_leaves)
    : model_(model), channel_(std::move(channel)) {
  if (!model.set_block_weights(this)) {
    throw Error(
        ErrorKind::config,
        "update.shard = \"weights\": this model runs by LibTorch's operations, whose autograd keeps every weight "
        "that a pass has read; set update.shard = \"gradients\"");
  }
  const at::NoGradGuard no_grad;
  const std::vector<NamedTensor> trained = model.trainable();
  const std::vector<int64_t> owners = owners_of(trained, channel_->size());
  for (size_t i = 0; i < trained.size(); ++i) owners_.emplace_back(trained[i].tensor, owners[i]);
  for (const Layer& layer : model.weights().layers) {
    Block& block = blocks_.emplace_back();
    for (const Linear* linear : layer.linears()) add(block, *linear, without_leaves);
  }
  here_ = ahead_ = none();
}

ShardedWeights::~ShardedWeights() { model_.set_block_weights(nullptr); }

void ShardedWeights::add(Block& block, const Linear& linear, bool without_leaves) {
  block.matrices.push_back(linear.weight);
  const bool narrow = linear.weight.scalar_type() != at::kFloat;
  for (const Linear::Part& part : linear.parts) {
    Piece piece{linear.weight.narrow(0, part.first, part.count), {}, -1, {}};
    if (part.weight.requires_grad()) {
      UCAS_CHECK(!part.weight.storage().is_alias_of(linear.weight.storage()), "a block's trained leaves lie apart");
      const auto found = std::ranges::find_if(owners_, [&](const auto& o) { return o.first.is_same(part.weight); });
      UCAS_CHECK(found != owners_.end(), "a trained leaf has an owner");
      piece.leaf = part.weight;
      piece.owner = found->second;
      if (without_leaves && narrow && mine(piece)) piece.kept = at::empty_like(piece.whole);
    }
    block.pieces.push_back(std::move(piece));
  }
}

// Neighbouring elements, as even as possible.
at::Tensor ShardedWeights::share_of_frozen(const Piece& piece, int64_t rank) const {
  const int64_t all = piece.whole.numel(), size = channel_->size(), first = all * rank / size;
  return flat(piece.whole).narrow(0, first, all * (rank + 1) / size - first);
}

// Once, of what is whole: a frozen matrix stays as it is, and what stands for a leaf's values follows the optimizer.
void ShardedWeights::keep(Block& block) {
  for (Piece& piece : block.pieces) {
    if (piece.owner < 0) piece.kept = share_of_frozen(piece, channel_->rank()).clone();
    if (piece.owner >= 0 && piece.kept.defined()) piece.kept.copy_(piece.whole);
  }
}

void ShardedWeights::give_back(const Block& block) {
  for (const at::Tensor& matrix : block.matrices) drop_values(matrix);
}

void ShardedWeights::fill(const Block& block) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& matrix : block.matrices) {
    allocate_values(matrix);
    use_huge_pages(matrix);
  }
  std::vector<std::vector<at::Tensor>> from(static_cast<size_t>(channel_->size()));
  for (const Piece& piece : block.pieces) {
    if (piece.owner >= 0) {
      if (mine(piece)) piece.whole.copy_(piece.kept.defined() ? piece.kept : piece.leaf.detach());
      from[static_cast<size_t>(piece.owner)].push_back(piece.whole);
      continue;
    }
    share_of_frozen(piece, channel_->rank()).copy_(piece.kept);
    for (int64_t rank = 0; rank < channel_->size(); ++rank) {
      const at::Tensor share = share_of_frozen(piece, rank);
      if (share.numel() > 0) from[static_cast<size_t>(rank)].push_back(share);
    }
  }
  channel_->broadcast(kGathering, from);
}

// Beside the pass, from now on; whatever else was on its way is given back.
void ShardedWeights::get_ahead(size_t layer) {
  if (ahead_ == layer) return;
  if (const size_t other = land(); other != none()) give_back(blocks_[other]);
  if (layer == none() || !model_.device().is_cpu()) return;
  ahead_ = layer;
  under_way_ = start_work(true, [this, layer] { fill(blocks_[layer]); });
}

// The block that was on its way and is whole now.
size_t ShardedWeights::land() {
  const size_t layer = std::exchange(ahead_, none());
  if (layer != none()) under_way_.get();
  return layer;
}

void ShardedWeights::need(size_t layer, bool back) {
  if (all_) return;
  if (here_ != layer) {
    const bool comes = ahead_ == layer;
    if (comes) land();
    if (here_ != none()) give_back(blocks_[here_]);
    here_ = layer;
    if (!comes) {
      get_ahead(none());
      fill(blocks_[layer]);
    }
  }
  get_ahead(back ? (layer == 0 ? none() : layer - 1) : layer + 1);
}

void ShardedWeights::gather() {
  if (all_) return;
  const size_t ahead = land();
  for (size_t layer = 0; layer < blocks_.size(); ++layer)
    if (layer != here_ && layer != ahead) fill(blocks_[layer]);
  all_ = true;
}

void ShardedWeights::drop() {
  const at::NoGradGuard no_grad;
  land();
  for (Block& block : blocks_) {
    if (!kept_) keep(block);
    give_back(block);
  }
  kept_ = true;
  all_ = false;
  here_ = none();
}

// Before the first drop() the leaves are still being read: what GEMMs read follows them as in any model.
void ShardedWeights::changed() {
  if (all_) return;
  get_ahead(none());
  if (here_ != none()) give_back(blocks_[here_]);
  here_ = none();
}

std::vector<Bf16Copy> ShardedWeights::kept_copies() {
  std::vector<Bf16Copy> copies;
  for (const Bf16Copy& copy : model_.bf16_copies()) {
    if (!copy.of_block) {
      copies.push_back(copy);
      continue;
    }
    for (const Block& block : blocks_) {
      for (const Piece& piece : block.pieces) {
        if (piece.leaf.defined() && piece.leaf.is_same(copy.master) && piece.kept.defined())
          copies.push_back({copy.master, piece.kept, copy.scale, true});
      }
    }
  }
  return copies;
}

}  // namespace ucas

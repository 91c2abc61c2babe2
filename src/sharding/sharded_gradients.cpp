#include "sharding/sharded_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "base/error.h"
#include "model/gemm/linear.h"

namespace ucas {

ShardedGradients::ShardedGradients(Model& model, std::span<const NamedTensor> parameters,
                                   std::span<const int64_t> owners, Ranks& ranks, const How& how)
    : model_(model), ranks_(ranks), how_(how) {
  UCAS_CHECK(owners.empty() ? ranks.alone() : parameters.size() == owners.size(),
             "expected an owner of each parameter");
  std::map<const at::TensorImpl*, Leaf> left;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& leaf = parameters[i].tensor;
    left.emplace(leaf.unsafeGetTensorImpl(), Leaf{leaf, owners.empty() ? 0 : owners[i], {}});
  }
  if (ranks.alone() || how.shard == Shard::gradients) {
    for (const std::vector<at::Tensor>& layer : model.set_backward_hook(this)) {
      Leaves& leaves = layers_.emplace_back();
      for (const at::Tensor& leaf : layer) {
        const auto found = left.extract(leaf.unsafeGetTensorImpl());
        UCAS_CHECK(!found.empty(), "a block's parameters must be its own and the optimizer's");
        leaves.push_back(found.mapped());
      }
    }
  }
  for (const NamedTensor& p : parameters) {  // in their order, the same on every rank
    const auto found = left.extract(p.tensor.unsafeGetTensorImpl());
    if (!found.empty()) rest_.push_back(found.mapped());
  }
}

ShardedGradients::~ShardedGradients() { model_.set_backward_hook(nullptr); }

void ShardedGradients::begin() {
  const at::NoGradGuard no_grad;
  const auto define = [this](const Leaves& leaves) {
    for (const Leaf& leaf : leaves)
      if (mine(leaf)) gradient_of(leaf.parameter);
  };
  for (const Leaves& layer : layers_) define(layer);
  define(rest_);
}

void ShardedGradients::pass(const std::function<void()>& work, int64_t givers) {
  givers_ = givers;
  set_aside(rest_);
  if (work) {
    work();
  } else {
    for (size_t layer = layers_.size(); layer-- > 0;) {
      before(layer);
      after(layer);
    }
  }
  give(rest_);
  givers_ = 0;
}

// Outside of pass(), as where a response is only logged, nothing moves.
void ShardedGradients::before(size_t layer) {
  if (givers_ > 0) set_aside(layers_[layer]);
}
void ShardedGradients::after(size_t layer) {
  if (givers_ > 0) give(layers_[layer]);
}

ShardedGradients::OfOwners ShardedGradients::by_owner(const Leaves& leaves) const {
  OfOwners lists(static_cast<size_t>(ranks_.size()));
  for (const Leaf& leaf : leaves) lists[static_cast<size_t>(leaf.owner)].push_back(gradient_of(leaf.parameter));
  return lists;
}

// A micro-batch begins at zero.
void ShardedGradients::set_aside(Leaves& leaves) {
  if (how_.reduce != Reduce::micro) return;
  const at::NoGradGuard no_grad;
  for (Leaf& leaf : leaves) {
    at::Tensor& gradient = leaf.parameter.mutable_grad();
    leaf.sum = std::move(gradient);
    gradient = scratch_for(leaf.parameter);
  }
}

at::Tensor ShardedGradients::scratch_for(const at::Tensor& parameter) {
  std::vector<at::Tensor>& spare = scratch_[parameter.sizes().vec()];
  if (spare.empty()) return at::zeros_like(parameter.detach());
  at::Tensor scratch = std::move(spare.back());
  spare.pop_back();
  return scratch.zero_();
}

// Brings them to who keeps them. By sums the memory of the others' is free again; by micro-batches another block uses
// it.
void ShardedGradients::give(Leaves& leaves) {
  const at::NoGradGuard no_grad;
  {
    const OfOwners to = by_owner(leaves);
    std::vector<at::Tensor> sums;
    for (const Leaf& leaf : leaves)
      if (how_.reduce == Reduce::micro && mine(leaf)) sums.push_back(leaf.sum);
    if (how_.reduce == Reduce::sum) {
      ranks_.reduce("summing gradients of a block", to);
    } else {
      ranks_.add_in_order("adding gradients of micro-batches", to, sums, givers_);
    }
  }
  for (Leaf& leaf : leaves) {
    at::Tensor& gradient = leaf.parameter.mutable_grad();
    if (how_.reduce == Reduce::micro) {
      scratch_[gradient.sizes().vec()].push_back(std::exchange(gradient, std::move(leaf.sum)));
    } else if (!mine(leaf)) {
      gradient.reset();
    }
  }
}

}  // namespace ucas

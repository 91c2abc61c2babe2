#include "sharding/sharded_gradients.h"

#include <ATen/core/grad_mode.h>

#include <map>

#include "base/error.h"
#include "model/gemm/linear.h"

namespace ucas {

ShardedGradients::ShardedGradients(Model& model, const Optimizer& optimizer, Ranks& ranks)
    : model_(model), ranks_(ranks) {
  std::map<const at::TensorImpl*, Leaf> left;
  const std::vector<NamedTensor> parameters = model.trainable();
  const std::vector<int64_t> owners = optimizer.owners();
  UCAS_CHECK(parameters.size() == owners.size(), "an optimizer of this model's parameters");
  for (size_t i = 0; i < parameters.size(); ++i) {
    left.emplace(parameters[i].tensor.unsafeGetTensorImpl(), Leaf{parameters[i].tensor, owners[i]});
  }
  for (const std::vector<at::Tensor>& layer : model.set_backward_hook(this)) {
    Leaves& leaves = layers_.emplace_back();
    for (const at::Tensor& leaf : layer) {
      const auto found = left.extract(leaf.unsafeGetTensorImpl());
      UCAS_CHECK(!found.empty(), "a block's parameters must be its own and the optimizer's");
      leaves.push_back(found.mapped());
    }
  }
  for (const NamedTensor& p : parameters) {  // in the model's order, the same on every rank
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

void ShardedGradients::pass(const std::function<void()>& work) {
  turn_ = -1;
  if (work) {
    work();
  } else {
    for (size_t layer = layers_.size(); layer-- > 0;) after(layer);
  }
  take(rest_);
}

void ShardedGradients::pass_of(int64_t rank, const std::function<void()>& work) {
  turn_ = rank;
  ranks_.barrier("a backward pass in turn");
  bring(rest_);
  if (rank == ranks_.rank()) {
    work();
  } else {
    for (size_t layer = layers_.size(); layer-- > 0;) {
      before(layer);
      after(layer);
    }
  }
  take(rest_);
}

void ShardedGradients::before(size_t layer) { bring(layers_[layer]); }
void ShardedGradients::after(size_t layer) { take(layers_[layer]); }

std::vector<at::Tensor> ShardedGradients::gradients_of(const Leaves& leaves, int64_t owner) const {
  std::vector<at::Tensor> gradients;
  for (const Leaf& leaf : leaves)
    if (leaf.owner == owner) gradients.push_back(gradient_of(leaf.parameter));
  return gradients;
}

// In order: what was added so far comes to the rank whose pass it is. By sums each begins from nothing.
void ShardedGradients::bring(const Leaves& leaves) const {
  if (turn_ < 0) return;
  const at::NoGradGuard no_grad;
  for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
    if (owner == turn_ || (ranks_.rank() != owner && ranks_.rank() != turn_)) continue;
    ranks_.send("bringing gradients", gradients_of(leaves, owner), owner, turn_);
  }
}

// To who keeps them; here the memory of the others' is free again.
void ShardedGradients::take(const Leaves& leaves) const {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> sums;
  for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
    if (turn_ < 0) {
      sums.push_back(gradients_of(leaves, owner));
    } else if (owner != turn_ && (ranks_.rank() == owner || ranks_.rank() == turn_)) {
      ranks_.send("taking gradients", gradients_of(leaves, owner), turn_, owner);
    }
  }
  if (turn_ < 0) ranks_.reduce("summing gradients of a block", sums);
  for (const Leaf& leaf : leaves)
    if (!mine(leaf)) leaf.parameter.mutable_grad().reset();
}

}  // namespace ucas

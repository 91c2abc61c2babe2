#include "sharding/sharded_masters.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace ucas {

ShardedMasters::ShardedMasters(Ranks& ranks, const std::vector<NamedTensor>& parameters,
                               const std::vector<int64_t>& owners, const std::vector<Bf16Copy>& copies)
    : ranks_(ranks), owned_(static_cast<size_t>(ranks.size())) {
  UCAS_CHECK(parameters.size() == owners.size(), "expected one owner rank per parameter");
  std::map<const at::TensorImpl*, Bf16Copy> by_leaf;
  for (const Bf16Copy& copy : copies) by_leaf.emplace(copy.master.unsafeGetTensorImpl(), copy);
  for (size_t i = 0; i < parameters.size(); ++i) {  // in the model's order, the same on every rank
    const auto found = by_leaf.find(parameters[i].tensor.unsafeGetTensorImpl());
    if (found != by_leaf.end()) owned_[static_cast<size_t>(owners[i])].push_back(found->second);
  }
}

bool ShardedMasters::has(const at::Tensor& leaf) const {
  return std::ranges::any_of(owned_, [&](const std::vector<Bf16Copy>& of_rank) {
    return std::ranges::any_of(of_rank, [&](const Bf16Copy& copy) { return copy.master.is_same(leaf); });
  });
}

void ShardedMasters::broadcast_weights() const {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> weights;
  for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
    weights.emplace_back();
    for (const Bf16Copy& copy : owned_[static_cast<size_t>(owner)]) {
      if (owner == ranks_.rank()) copy.refresh();
      weights.back().push_back(copy.compute);
    }
  }
  ranks_.broadcast("broadcasting weights", weights);
}

void ShardedMasters::gather() const {
  const at::NoGradGuard no_grad;
  ranks_.barrier("gathering master weights");
  for (int64_t owner = 1; owner < ranks_.size(); ++owner) {
    if (!ranks_.leads() && ranks_.rank() != owner) continue;
    std::vector<at::Tensor> masters;
    for (const Bf16Copy& copy : owned_[static_cast<size_t>(owner)]) {
      allocate_values(copy.master);
      masters.push_back(copy.master);
    }
    ranks_.send("gathering master weights", masters, owner, 0);
  }
}

void ShardedMasters::release() const {
  for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
    if (owner == ranks_.rank()) continue;
    for (const Bf16Copy& copy : owned_[static_cast<size_t>(owner)]) drop_values(copy.master);
  }
}

}  // namespace ucas

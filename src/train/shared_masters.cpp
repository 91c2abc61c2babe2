#include "train/shared_masters.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace ucas {

SharedMasters::SharedMasters(Ranks& ranks, const std::vector<NamedTensor>& parameters,
                             const std::vector<int64_t>& owners, const std::vector<NarrowCopy>& copies)
    : ranks_(ranks), owned_(static_cast<size_t>(ranks.size())) {
  UCAS_CHECK(parameters.size() == owners.size(), "an owner for each parameter");
  std::map<const at::TensorImpl*, NarrowCopy> by_leaf;
  for (const NarrowCopy& copy : copies) by_leaf.emplace(copy.leaf.unsafeGetTensorImpl(), copy);
  for (size_t i = 0; i < parameters.size(); ++i) {  // in the model's order, the same on every rank
    const auto found = by_leaf.find(parameters[i].tensor.unsafeGetTensorImpl());
    if (found != by_leaf.end()) owned_[static_cast<size_t>(owners[i])].push_back(found->second);
  }
}

bool SharedMasters::has(const at::Tensor& leaf) const {
  return std::ranges::any_of(owned_, [&](const std::vector<NarrowCopy>& of_rank) {
    return std::ranges::any_of(of_rank, [&](const NarrowCopy& copy) { return copy.leaf.is_same(leaf); });
  });
}

void SharedMasters::hand_out() const {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> weights;
  for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
    weights.emplace_back();
    for (const NarrowCopy& copy : owned_[static_cast<size_t>(owner)]) {
      if (owner == ranks_.rank()) copy.refresh();
      weights.back().push_back(copy.used);
    }
  }
  ranks_.broadcast("handing out weights", weights);
}

void SharedMasters::gather() const {
  const at::NoGradGuard no_grad;
  ranks_.meet("gathering master weights");
  for (int64_t owner = 1; owner < ranks_.size(); ++owner) {
    if (!ranks_.leads() && ranks_.rank() != owner) continue;
    std::vector<at::Tensor> masters;
    for (const NarrowCopy& copy : owned_[static_cast<size_t>(owner)]) {
      make_room(copy.leaf);
      masters.push_back(copy.leaf);
    }
    ranks_.hand("gathering master weights", masters, owner, 0);
  }
}

void SharedMasters::release() const {
  for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
    if (owner == ranks_.rank()) continue;
    for (const NarrowCopy& copy : owned_[static_cast<size_t>(owner)]) drop_values(copy.leaf);
  }
}

}  // namespace ucas

#include "model/forward.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "model/tensor/autograd.h"

namespace ucas {

bool wants_gradient(const Weights& weights) {
  auto trained = [](const NamedTensor& p) { return p.tensor.requires_grad(); };
  return c10::GradMode::is_enabled() &&
         (std::ranges::any_of(weights.parameters, trained) || std::ranges::any_of(weights.adapter, trained));
}

at::Tensor tied_to_leaves(const Weights& weights, const at::Tensor& hidden,
                          std::function<void(const at::Tensor& d_hidden)> backward) {
  std::vector<at::Tensor> leaves;
  for (const auto* list : {&weights.parameters, &weights.adapter}) {
    for (const NamedTensor& p : *list) leaves.push_back(p.tensor);
  }
  return differentiable(
      leaves, {hidden},
      [count = leaves.size(), backward = std::move(backward)](const std::vector<at::Tensor>& gradients) {
        backward(gradients[0]);
        return std::vector<at::Tensor>(count);  // it has added them itself
      })[0];
}

}  // namespace ucas

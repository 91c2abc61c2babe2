#include "model/tensor/autograd.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "base/error.h"

namespace ucas {

namespace {

using torch::autograd::variable_list;

struct Closure : torch::CustomClassHolder {
  Backward backward;
};

struct ClosureFunction : torch::autograd::Function<ClosureFunction> {
  static variable_list forward(torch::autograd::AutogradContext* context, at::TensorList inputs,
                               const std::vector<at::Tensor>* outputs, Backward* backward) {
    auto closure = c10::make_intrusive<Closure>();
    closure->backward = std::move(*backward);
    context->saved_data["closure"] = c10::IValue::make_capsule(closure);
    context->set_materialize_grads(false);
    return *outputs;
  }
  static variable_list backward(torch::autograd::AutogradContext* context, variable_list gradients) {
    auto closure = c10::static_intrusive_pointer_cast<Closure>(context->saved_data["closure"].toCapsule());
    UCAS_CHECK(closure->backward, "backward may run only once per graph");
    variable_list result = std::exchange(closure->backward, nullptr)(gradients);
    result.resize(result.size() + 2);  // for the two pointers, which take no gradient
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> differentiable(const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
                                       Backward backward) {
  return ClosureFunction::apply(at::TensorList(inputs), &outputs, &backward);
}

}  // namespace ucas

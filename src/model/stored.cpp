#include "model/stored.h"

#include <ATen/core/Tensor.h>

#include <memory>

#include "base/error.h"

namespace ucas {

StoredType stored_type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return StoredType::f32;
    case at::kHalf:
      return StoredType::f16;
    case at::kBFloat16:
      return StoredType::bf16;
    case at::kChar:
      return StoredType::i8;
    case at::kByte:
      return StoredType::u8;
    default:
      break;
  }
  UCAS_CHECK(false, "a tensor of a type that weight files hold");
  return StoredType::other;
}

std::vector<TensorToStore> tensors_to_store(const std::vector<NamedTensor>& tensors, const MasterValues& values) {
  auto staging = std::make_shared<at::Tensor>();  // keeps one copy alive while it is written
  std::vector<TensorToStore> stored;
  for (const NamedTensor& t : tensors) {
    const auto data = [staging, tensor = t.tensor, values]() -> const void* {
      staging->reset();  // before the next is made
      *staging = (has_values(tensor) ? tensor.detach() : values(tensor)).cpu().contiguous();
      return staging->const_data_ptr();
    };
    stored.push_back({t.name, t.tensor.sizes().vec(), data, stored_type_of(t.tensor)});
  }
  return stored;
}

}  // namespace ucas

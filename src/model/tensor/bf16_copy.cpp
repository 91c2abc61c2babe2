#include "model/tensor/bf16_copy.h"

#include <ATen/TensorOperators.h>

#include "base/error.h"

namespace ucas {

namespace {

void resize_storage(const at::Tensor& tensor, size_t bytes) {
  at::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  UCAS_CHECK(storage->allocator() != nullptr && tensor.storage_offset() == 0, "the tensor must own its storage");
  if (storage->nbytes() == bytes) return;
  storage->set_data_ptr_noswap(storage->allocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

}  // namespace

void Bf16Copy::refresh() const {
  if (!has_values(master) || !has_values(compute)) return;
  compute.copy_(scale == 1 ? master.detach() : master.detach() * scale);
}

bool has_values(const at::Tensor& tensor) { return tensor.numel() == 0 || tensor.storage().nbytes() > 0; }
void drop_values(const at::Tensor& tensor) { resize_storage(tensor, 0); }
void allocate_values(const at::Tensor& tensor) { resize_storage(tensor, tensor.nbytes()); }

}  // namespace ucas

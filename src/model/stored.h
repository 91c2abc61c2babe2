// Tensors of a model or of its optimizer as the writer of weight files takes them (hf/safetensors.h): of any
// device and type.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hf/safetensors.h"
#include "model/model.h"

namespace ucas {

// The f32 master weights of a bf16 model that its parameters do not hold: ranks keep a shard each
// (sharding/sharded_gradients.h), an offloaded optimizer keeps them on the host (train/optimizer/host_state.h). How
// such a model is loaded without them, and written to files all the same.

// Values of a trained parameter, f32 and in its shape, wherever they are kept. Asked for one parameter at a time.
using MasterValues = std::function<at::Tensor(const at::Tensor& parameter)>;

// For each trained parameter, in the order of Model::trainable() and before any has values: does its master stay here?
using KeptMasters = std::function<std::vector<bool>(const std::vector<NamedTensor>& trained)>;

// load_model() that never has the masters of others: a tensor is read, rounded to bf16, and kept in f32 only where
// `keeps` says so. Parameters of the others have no values (model/tensor/bf16_copy.h). In f32, and where passes read
// the parameters themselves (Model::bf16_copies() is empty), all stay. `keeps` may be null: all stay.
std::unique_ptr<Model> load_model(const std::string& directory, at::Device device, const ModelOptions& options,
                                  const KeptMasters& keeps);

// What save_model() writes, by name: of parameters without values the bf16 copies, where files are bf16.
std::vector<NamedTensor> tensors_saved(Model& model);

// save_model() of a model with parameters without values: bf16 files take the bf16 copies, others ask `values`.
void save_model(Model& model, const std::string& directory, const std::string& like, const MasterValues& values,
                int64_t shard_bytes = int64_t{5} << 30);

// f32, f16, bf16, int8 or uint8.
StoredType stored_type_of(const at::Tensor& tensor);

// Shares the tensors; copies, one at a time, those on another device or not contiguous; `values` gives those without
// values of their own.
std::vector<TensorToStore> tensors_to_store(const std::vector<NamedTensor>& tensors,
                                            const MasterValues& values = nullptr);

// Which values a weight file can hold as finite numbers.
// Index of the first value that is NaN or infinite, or becomes infinite when it is rounded to `torch_dtype` ("float32",
// "float16", "bfloat16"); -1 if there is none.
int64_t first_not_finite(std::span<const float> values, const std::string& torch_dtype = "float32");

}  // namespace ucas

// The f32 master weights of a bf16 model where not all of them lie in its leaves: ranks keep a share each
// (sharding/sharded_masters.h), an offloaded optimizer keeps them on the host (train/optimizer/host_state.h). How such
// a model is loaded without them, and written to files all the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"

namespace ucas {

// Values of a trained parameter, f32 and in its shape, wherever they are kept. Asked for one parameter at a time.
using MasterValues = std::function<at::Tensor(const at::Tensor& leaf)>;

// For each trained parameter, in the order of Model::trainable() and before any has values: does its master stay here?
using KeptMasters = std::function<std::vector<bool>(const std::vector<NamedTensor>& trained)>;

// load_model() that never has the masters of others: a tensor is read, rounded to bf16, and kept in f32 only where
// `keeps` says so. Leaves of the others have no values (model/tensor/bf16_copy.h). In f32, and where passes read the
// leaves themselves (Model::bf16_copies() is empty), all stay. `keeps` may be null: all stay.
std::unique_ptr<Model> load_model(const std::string& directory, at::Device device, const ModelOptions& options,
                                  const KeptMasters& keeps);

// What save_model() writes, by name: of leaves without values the bf16 copies, where files are bf16.
std::vector<NamedTensor> tensors_saved(Model& model);

// save_model() of a model some of whose leaves have no values: bf16 files take the bf16 copies, others ask `values`.
void save_model(Model& model, const std::string& directory, const std::string& like, const MasterValues& values);

}  // namespace ucas

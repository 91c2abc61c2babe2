// The leaf tensors that a config.json asks for, and whether a checkpoint's files hold them, before anything is
// allocated. Legend of shapes: model/backend/block.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hf/model_config.h"
#include "hf/peft.h"
#include "hf/safetensors.h"

namespace ucas {

// A leaf tensor of a checkpoint, [columns] or [rows, columns].
struct ParameterShape {
  std::string module, kind;       // "model.layers.0.mlp.up_proj", ".weight"
  int64_t rows = 0, columns = 0;  // rows 0: a vector
  bool linear = false;            // of a product of a block: an adapter can change it
  int64_t elements() const { return (rows == 0 ? 1 : rows) * columns; }
  std::vector<int64_t> shape() const { return rows == 0 ? std::vector{columns} : std::vector{rows, columns}; }
};
// In the order of Weights::parameters.
std::vector<ParameterShape> parameter_shapes(const ModelConfig& config);

// By name; Error(ErrorKind::dup_key) where two files hold one tensor.
using StoredByName = std::map<std::string, StoredTensor>;
StoredByName stored_by_name(std::vector<StoredTensor> list, const std::string& directory);

// Errors: config, where config.json contradicts the tensors (number of layers, a shape), naming both values;
// missing_tensor; unexpected_tensor. A tied model may store its head, too; old files hold an unused buffer.
void check_parameters(const ModelConfig& config, const StoredByName& stored, const std::string& directory);
// The same for the tensors of an adapter.
void check_adapter(const PeftAdapter& adapter, const ModelConfig& base, const StoredByName& stored,
                   const std::string& directory);

}  // namespace ucas

// The parameters that a config.json asks for, and whether a checkpoint's files hold them, before anything is
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

// A parameter of one block: a matrix [rows, columns], with a bias [rows] or without, or the weight of a norm [columns].
struct BlockParameter {
  BlockPart part;
  const char* name;
  int64_t rows = 0, columns = 0;  // rows 0: a norm
  bool bias = false;
  bool is_norm() const { return rows == 0; }
};

// visit(BlockParameter) of all that a block of this model has, in the order of its checkpoint's names here. Shapes,
// storage, LoRA targets, names in files, counts of parameters, FLOPs and memory follow from this list.
template <class Visit>
void visit_block(const ModelConfig& c, Visit visit) {
  const BlockSpec& spec = c.family->block;
  const BlockNames& names = c.family->names;
  const int64_t D = c.hidden_size, F = c.intermediate_size, d = c.head_dim;
  const int64_t query = c.num_attention_heads * d, key = c.num_key_value_heads * d;
  const auto norm = [&](BlockPart part, int64_t size) { visit(BlockParameter{part, names[part], 0, size}); };
  const auto matrix = [&](BlockPart part, int64_t rows, int64_t columns, bool bias = false) {
    visit(BlockParameter{part, names[part], rows, columns, bias});
  };
  if (spec.norms_before) norm(BlockPart::attention_in, D);
  matrix(BlockPart::query, query, D, spec.qkv_bias);
  matrix(BlockPart::key, key, D, spec.qkv_bias);
  matrix(BlockPart::value, key, D, spec.qkv_bias);
  matrix(BlockPart::out, D, query);
  if (spec.qk_norm) {
    norm(BlockPart::q_norm, spec.qk_norm_whole ? query : d);
    norm(BlockPart::k_norm, spec.qk_norm_whole ? key : d);
  }
  if (spec.norms_after) norm(BlockPart::attention_out, D);
  if (spec.norms_before) norm(BlockPart::mlp_in, D);
  matrix(BlockPart::gate, F, D);
  matrix(BlockPart::up, F, D);
  matrix(BlockPart::down, D, F);
  if (spec.norms_after) norm(BlockPart::mlp_out, D);
}

inline std::string layer_prefix(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

// A parameter of a checkpoint, [columns] or [rows, columns].
struct ParameterShape {
  std::string module, kind;       // "model.layers.0.mlp.up_proj", ".weight"
  int64_t rows = 0, columns = 0;  // rows 0: a vector
  bool linear = false;            // of a GEMM of a block: an adapter can change it
  bool is_norm() const { return rows == 0 && kind == ".weight"; }
  int64_t elements() const { return (rows == 0 ? 1 : rows) * columns; }
  std::vector<int64_t> shape() const { return rows == 0 ? std::vector{columns} : std::vector{rows, columns}; }
};
// In the order of Weights::parameters.
std::vector<ParameterShape> parameter_shapes(const ModelConfig& config);

// Of a checkpoint with models of several modalities those of the text model, by the names that it has alone; else all.
std::vector<StoredTensor> text_tensors(std::vector<StoredTensor> list, const ModelConfig& config,
                                       const std::string& directory);

// By name; Error(ErrorKind::dup_key) where two files hold one tensor.
using StoredByName = std::map<std::string, StoredTensor>;
StoredByName stored_by_name(std::vector<StoredTensor> list, const std::string& directory);
// Takes off what torch.compile, data parallelism or a model of several modalities has put before the name of every
// tensor; lm_head is next to a model.language_model.
void unwrap(std::vector<StoredTensor>& tensors);

// Errors: config, where config.json contradicts the tensors (number of layers, a shape), naming both values;
// missing_tensor; unexpected_tensor. A tied model may store its head, too; old files hold an unused buffer.
void check_parameters(const ModelConfig& config, const StoredByName& stored, const std::string& directory);
// The same for the tensors of an adapter.
void check_adapter(const PeftAdapter& adapter, const ModelConfig& base, const StoredByName& stored,
                   const std::string& directory);

// What a model has been asked to compute, to be held against what the machine can do (model/limits.h,
// config/plan/step_time.h). Counted from shapes, once for every row that passes: what is computed again to save memory
// is no work.
struct Work {
  double operations = 0;  // of GEMMs and attention; a multiply-add is two
  double bytes = 0;       // of weights, keys and values that decoding has read, each once a step
};

// Multiply-adds of one token: of all blocks' GEMMs, of the LM head, and of attention.
inline double block_multiply_adds(const ModelConfig& c) {
  double of_block = 0;
  visit_block(c, [&](const BlockParameter& p) { of_block += static_cast<double>(p.rows * p.columns); });
  return static_cast<double>(c.num_hidden_layers) * of_block;
}
inline double head_multiply_adds(const ModelConfig& c) { return static_cast<double>(c.vocab_size * c.hidden_size); }
// Of one layer for each key in sight.
inline double key_multiply_adds(const ModelConfig& c) {
  return static_cast<double>(2 * c.num_attention_heads * c.head_dim);
}
// Keys in sight of a token at this position, of all layers together.
inline double keys_in_sight(const ModelConfig& c, int64_t position) {
  if (c.windows.empty()) return static_cast<double>(c.num_hidden_layers * (position + 1));
  double keys = 0;
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const int64_t window = c.window(static_cast<size_t>(layer));
    keys += static_cast<double>(window == 0 || position < window ? position + 1 : window);
  }
  return keys;
}

}  // namespace ucas

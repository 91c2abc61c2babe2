// config.json of a checkpoint of one of the families, as Hugging Face writes it.
// What it leaves out means what transformers takes for it. What ucas does not run is refused by name, never passed
// over: other architectures (a mixture of experts, several modalities), quantised weights, biases and rotations that
// the families do not have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model_options.h"
#include "hf/families.h"
#include "hf/rope_config.h"

namespace ucas {

struct ModelConfig {  // HF key names
  const Family* family = &kFamilies[0];
  bool inside = false;       // the text model of a checkpoint with others (kTowers)
  int64_t hidden_size = 64;  // D
  int64_t num_hidden_layers = 2;
  int64_t num_attention_heads = 4;
  int64_t num_key_value_heads = 2;
  int64_t head_dim = 16;  // hidden_size / num_attention_heads unless the file says otherwise
  int64_t intermediate_size = 192;
  int64_t vocab_size = 58;  // V: rows of the LM head, padding rows included
  int64_t max_position_embeddings = 4096;
  // A token of layer l sees itself and the windows[l] - 1 tokens before it; 0: all before it. Empty: so in every layer.
  std::vector<int64_t> windows;
  RopeConfig rope;
  RopeConfig local_rope;              // of layers with a window, in families where those have their own; of unrotated
  int64_t query_pre_attn_scalar = 0;  // scores are divided by its root; 0: head_dim
  std::vector<bool> unrotated;        // which layers do not rotate; empty: none
  double embedding_multiplier = 1;    // Granite's four; of scores: 0: by the width of a head
  double attention_multiplier = 0, residual_multiplier = 1, logits_scaling = 1;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = true;
  std::string torch_dtype = "float32";           // what the checkpoint is stored in, and what we save
  std::vector<int32_t> eos_token_id;             // of config.json and generation_config.json together
  int64_t bos_token_id = -1, pad_token_id = -1;  // -1: none

  int64_t window(size_t layer) const { return windows.empty() ? 0 : windows[layer]; }
  // By local_rope instead of rope.
  bool rotates_locally(size_t layer) const {
    return (family->block.local_rope && window(layer) > 0) || (!unrotated.empty() && unrotated[layer]);
  }
  int64_t parameter_count() const;
};

std::string family_names();  // "qwen2, qwen3, llama, mistral"
ModelConfig read_model_config(const std::string& directory);
ModelConfig read_model_config_file(const std::string& path);  // a config.json alone
// Error(ErrorKind::tokenizer) where a tokenizer of so many ids has more than the model has rows.
void check_vocabulary(int64_t ids, const std::string& tokenizer, const ModelConfig& config);
// Writes config.json and generation_config.json. Keys of `like`'s files that we do not model are kept when given.
void write_model_config(const ModelConfig& config, const std::string& directory, const std::string& like = "");

// Which models the GPU kernels of this program run (kernels/gpu/kernels.h); others run by LibTorch's operations there.
std::string unsuited_for_kernels(const ModelConfig& config, const ModelOptions& options);  // why not; empty: it suits
bool suits_kernels(const ModelConfig& config, const ModelOptions& options);

}  // namespace ucas

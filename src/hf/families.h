// The families of models that run here: a row each, all on the one block of model/block.h. Another one whose block
// differs by nothing else than these columns is another row.
#pragma once

#include <cstdint>
#include <string_view>

namespace ucas {

struct Family {
  const char* model_type;  // in config.json
  const char* architecture;
  const char* title;
  bool qkv_bias;        // of the q, k and v projections
  bool qk_norm;         // an RMS norm of every query and key head before rotation
  bool sliding_window;  // config.json may speak of one
  int64_t head_dim;     // where config.json has none; 0: hidden_size / num_attention_heads
};

inline constexpr Family kFamilies[] = {
    {"qwen2", "Qwen2ForCausalLM", "Qwen2", true, false, true, 0},
    {"qwen3", "Qwen3ForCausalLM", "Qwen3", false, true, true, 128},
    {"llama", "LlamaForCausalLM", "Llama", false, false, false, 0},
};

// nullptr: none of that name.
constexpr const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (model_type == family.model_type) return &family;
  return nullptr;
}

}  // namespace ucas

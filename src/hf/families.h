// The families of models that run here: a row each, all on the one block of model/backend/block.h. Another one whose
// block differs by nothing else than these columns is another row.
#pragma once

#include <cstdint>
#include <string_view>

namespace ucas {

// Which layers have a sliding window: none, all where sliding_window is not null, or those that the file names where
// use_sliding_window is true.
enum class Window { none, all_layers, by_layer };

struct Family {
  const char* model_type;  // in config.json
  const char* architecture;
  const char* title;
  bool qkv_bias;  // of the q, k and v projections
  bool qk_norm;   // an RMS norm of every query and key head before rotation
  Window window;
  // What transformers takes where config.json has no such key:
  int64_t head_dim;   // 0: hidden_size / num_attention_heads
  int64_t kv_heads;   // num_key_value_heads; 0: num_attention_heads
  int64_t positions;  // max_position_embeddings
};

inline constexpr Family kFamilies[] = {
    {"qwen2", "Qwen2ForCausalLM", "Qwen2", true, false, Window::by_layer, 0, 32, 32768},
    {"qwen3", "Qwen3ForCausalLM", "Qwen3", false, true, Window::by_layer, 128, 32, 32768},
    {"llama", "LlamaForCausalLM", "Llama", false, false, Window::none, 0, 0, 2048},
    {"mistral", "MistralForCausalLM", "Mistral", false, false, Window::all_layers, 0, 8, 131072},
};

// Models that are asked for and do not run: what an error says of them.
struct OtherModels {
  const char* what;
  std::string_view model_types;  // with a space between
};

inline constexpr OtherModels kOtherModels[] = {
    {"a mixture of experts",
     "mixtral qwen2_moe qwen3_moe qwen3_next llama4_text deepseek_v2 deepseek_v3 deepseek_v32 gpt_oss olmoe phimoe "
     "glm4_moe "
     "ernie4_5_moe hunyuan_v1_moe granitemoe minimax minimax_m2 dbrx"},
    {"a multimodal model",
     "llama4 mllama llava llava_next qwen2_vl qwen2_5_vl qwen2_5_omni qwen2_audio qwen3_vl qwen3_vl_moe qwen3_omni_moe "
     "qwen3_5 qwen3_5_moe mistral3 pixtral gemma3 gemma3n paligemma internvl phi4_multimodal kimi_k25"},
    {"a model with state-space or recurrent layers",
     "mamba mamba2 falcon_mamba falcon_h1 jamba bamba zamba2 nemotron_h recurrent_gemma rwkv"},
    {"an unsupported dense architecture",
     "gemma gemma2 gemma3_text phi phi3 gpt2 gpt_neox gptj opt bloom falcon olmo olmo2 olmo3 cohere cohere2 glm glm4 "
     "granite "
     "internlm3 ministral nemotron smollm3 seed_oss stablelm starcoder2 exaone4"},
    {"no decoder-only language model", "bert modernbert roberta t5"},
};

// nullptr: none of that name.
constexpr const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (model_type == family.model_type) return &family;
  return nullptr;
}

}  // namespace ucas

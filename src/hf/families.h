// The families of models that run here: a row each, all on the one block of model/backend/block.h. Another one whose
// block differs by nothing else than the columns of hf/block_spec.h is another row.
#pragma once

#include <cstdint>
#include <string_view>

#include "hf/block_spec.h"

namespace ucas {

struct Family {
  const char* model_type;  // in config.json
  const char* architecture;
  const char* title;
  BlockSpec block;
  // What transformers takes where config.json has no such key:
  int64_t head_dim;   // 0: hidden_size / num_attention_heads
  int64_t kv_heads;   // num_key_value_heads; 0: num_attention_heads
  int64_t positions;  // max_position_embeddings
  double theta = 10000;
  double eps = 1e-6;                  // rms_norm_eps
  const char* local_theta = nullptr;  // key of the base of layers that slide; nullptr: rope_theta
  double usual_local_theta = 10000;
  int64_t pattern = 6;                   // every how many layers one sees all
  bool tied = false;                     // tie_word_embeddings
  int32_t eos = -1, bos = -1, pad = -1;  // ids; -1: none
  BlockNames names = kNormsBefore;
};

inline constexpr BlockSpec kOlmo = {.qk_norm = true, .qk_norm_whole = true, .norms_before = false, .norms_after = true};
inline constexpr BlockSpec kOlmo3 = {.qk_norm = true,
                                     .qk_norm_whole = true,
                                     .window = Window::pattern,
                                     .local_rope = true,
                                     .norms_before = false,
                                     .norms_after = true};

inline constexpr Family kFamilies[] = {
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .title = "Qwen2",
     .block = {.qkv_bias = true, .window = Window::by_layer},
     .head_dim = 0,
     .kv_heads = 32,
     .positions = 32768},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .title = "Qwen3",
     .block = {.qk_norm = true, .window = Window::by_layer},
     .head_dim = 128,
     .kv_heads = 32,
     .positions = 32768},
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .title = "Llama",
     .block = {},
     .head_dim = 0,
     .kv_heads = 0,
     .positions = 2048},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .title = "Mistral",
     .block = {.window = Window::all_layers},
     .head_dim = 0,
     .kv_heads = 8,
     .positions = 131072},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .title = "Gemma 3",
     .block = {.qk_norm = true,
               .window = Window::pattern,
               .local_rope = true,
               .query_scalar = true,
               .gate = Gate::gelu_tanh,
               .norms_after = true,
               .norm_offset = true,
               .scaled_embedding = true},
     .head_dim = 256,
     .kv_heads = 4,
     .positions = 131072,
     .theta = 1e6,
     .local_theta = "rope_local_base_freq",
     .tied = true,
     .eos = 1,
     .bos = 2,
     .pad = 0,
     .names = kNormsBeforeAndAfter},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .title = "SmolLM3",
     .block = {.window = Window::by_layer, .unrotated_layers = true},
     .head_dim = 0,
     .kv_heads = 4,
     .positions = 32768,
     .theta = 2e6,
     .tied = true},
    {.model_type = "granite",
     .architecture = "GraniteForCausalLM",
     .title = "Granite",
     .block = {.multipliers = true},
     .head_dim = 0,
     .kv_heads = 0,
     .positions = 2048},
    {.model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .title = "OLMo 2",
     .block = kOlmo,
     .head_dim = 0,
     .kv_heads = 0,
     .positions = 2048,
     .eps = 1e-5,
     .names = kNormsBeforeAndAfter},
    {.model_type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .title = "OLMo 3",
     .block = kOlmo3,
     .head_dim = 0,
     .kv_heads = 0,
     .positions = 2048,
     .theta = 5e5,
     .eps = 1e-5,
     .usual_local_theta = 5e5,
     .pattern = 4,
     .names = kNormsBeforeAndAfter},
};

// Models of several modalities whose text model is one of the families: that is read, the rest is left alone.
struct Tower {
  const char *model_type, *architecture;
  const char* family;
};
inline constexpr Tower kTowers[] = {{"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
                                    {"qwen2_vl", "Qwen2VLForConditionalGeneration", "qwen2"},
                                    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "qwen2"}};

// Models that are asked for and do not run: what an error says of them.
struct OtherModels {
  const char* what;
  std::string_view model_types;  // with a space between
};

inline constexpr OtherModels kOtherModels[] = {
    {"a mixture of experts",
     "mixtral qwen2_moe qwen3_moe qwen3_next llama4_text deepseek_v2 deepseek_v3 deepseek_v32 gpt_oss olmoe phimoe "
     "glm4_moe ernie4_5_moe hunyuan_v1_moe granitemoe granitemoeshared minimax minimax_m2 dbrx"},
    {"a multimodal model",
     "llama4 mllama llava llava_next qwen2_5_omni qwen2_audio qwen3_vl qwen3_vl_moe qwen3_omni_moe "
     "qwen3_5 qwen3_5_moe gemma4 mistral3 pixtral gemma3n paligemma internvl phi4_multimodal kimi_k25"},
    {"a model with state-space or recurrent layers",
     "mamba mamba2 falcon_mamba falcon_h1 jamba bamba zamba2 nemotron_h recurrent_gemma rwkv granitemoehybrid lfm2 "
     "qwen3_5_text nemotron3"},
    {"an unsupported dense architecture",
     "gemma gemma2 phi phi3 gpt2 gpt_neox gptj opt bloom falcon olmo cohere cohere2 glm glm4 "
     "granite_swa gemma4_text ministral3 minicpm5 "
     "internlm3 ministral nemotron seed_oss stablelm starcoder2 exaone4"},
    {"no decoder-only language model", "bert modernbert roberta t5"},
};

// nullptr: none of that name.
constexpr const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (model_type == family.model_type) return &family;
  return nullptr;
}

}  // namespace ucas

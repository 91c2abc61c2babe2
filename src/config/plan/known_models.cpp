#include "config/plan/known_models.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "hf/hub.h"

namespace ucas {

namespace {

struct KnownModel {
  const char *name, *family;
  int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocabulary, positions;
  bool tied;
  int64_t window = 0;  // of all layers but every sixth
};

// As their config.json on the hub has it.
constexpr KnownModel kKnown[] = {
    {"qwen2.5-0.5b", "qwen2", 896, 4864, 24, 14, 2, 64, 151936, 32768, true},
    {"qwen2.5-1.5b", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, 131072, true},
    {"qwen2.5-3b", "qwen2", 2048, 11008, 36, 16, 2, 128, 151936, 32768, true},
    {"qwen2.5-7b", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, 131072, false},
    {"qwen2.5-14b", "qwen2", 5120, 13824, 48, 40, 8, 128, 152064, 131072, false},
    {"qwen2.5-32b", "qwen2", 5120, 27648, 64, 40, 8, 128, 152064, 131072, false},
    {"qwen2.5-72b", "qwen2", 8192, 29568, 80, 64, 8, 128, 152064, 131072, false},
    {"qwen2.5-math-1.5b", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, 4096, true},
    {"qwen2.5-math-7b", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, 4096, false},
    {"deepseek-r1-distill-qwen-1.5b", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, 131072, false},
    {"deepseek-r1-distill-qwen-7b", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, 131072, false},
    {"qwen3-0.6b", "qwen3", 1024, 3072, 28, 16, 8, 128, 151936, 40960, true},
    {"qwen3-1.7b", "qwen3", 2048, 6144, 28, 16, 8, 128, 151936, 40960, true},
    {"qwen3-4b", "qwen3", 2560, 9728, 36, 32, 8, 128, 151936, 40960, true},
    {"qwen3-8b", "qwen3", 4096, 12288, 36, 32, 8, 128, 151936, 40960, false},
    {"qwen3-14b", "qwen3", 5120, 17408, 40, 40, 8, 128, 151936, 40960, false},
    {"qwen3-32b", "qwen3", 5120, 25600, 64, 64, 8, 128, 151936, 40960, false},
    {"llama-3.2-1b", "llama", 2048, 8192, 16, 32, 8, 64, 128256, 131072, true},
    {"llama-3.2-3b", "llama", 3072, 8192, 28, 24, 8, 128, 128256, 131072, true},
    {"llama-3.1-8b", "llama", 4096, 14336, 32, 32, 8, 128, 128256, 131072, false},
    {"mistral-7b-v0.1", "mistral", 4096, 14336, 32, 32, 8, 128, 32000, 32768, false},
    {"mistral-7b-v0.3", "mistral", 4096, 14336, 32, 32, 8, 128, 32768, 32768, false},
    {"gemma-3-270m", "gemma3_text", 640, 2048, 18, 4, 1, 256, 262144, 32768, true, 512},
    {"gemma-3-1b", "gemma3_text", 1152, 6912, 26, 4, 1, 256, 262144, 32768, true, 512},
    {"smollm2-135m", "llama", 576, 1536, 30, 9, 3, 64, 49152, 8192, true},
    {"smollm2-360m", "llama", 960, 2560, 32, 15, 5, 64, 49152, 8192, true},
    {"smollm2-1.7b", "llama", 2048, 8192, 24, 32, 32, 64, 49152, 8192, true}};

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// "Qwen/Qwen2.5-7B-Instruct" is "qwen2.5-7b".
std::string plain_name(const std::string& name) {
  std::string plain = lower(name.substr(name.rfind('/') + 1));
  for (const std::string ending : {"-instruct", "-base", "-chat", "-hf", "-it", "-pt"}) {
    if (plain.ends_with(ending)) plain.resize(plain.size() - ending.size());
  }
  return plain.starts_with("meta-llama-") ? plain.substr(5) : plain;
}

}  // namespace

std::optional<ModelConfig> known_model(const std::string& name) {
  const std::string plain = plain_name(name);
  for (const KnownModel& known : kKnown) {
    if (plain != known.name) continue;
    ModelConfig c;
    c.family = find_family(known.family);
    c.hidden_size = known.hidden;
    c.intermediate_size = known.intermediate;
    c.num_hidden_layers = known.layers;
    c.num_attention_heads = known.heads;
    c.num_key_value_heads = known.kv_heads;
    c.head_dim = known.head_dim;
    c.vocab_size = known.vocabulary;
    c.max_position_embeddings = known.positions;
    c.tie_word_embeddings = known.tied;
    for (int64_t layer = 0; known.window > 0 && layer < known.layers; ++layer)
      c.windows.push_back((layer + 1) % 6 == 0 ? 0 : known.window);
    c.torch_dtype = "bfloat16";
    return c;
  }
  return std::nullopt;
}

FoundModel model_of_hub_name(const std::string& name) {
  if (const std::string config = cached_file(name, "config.json"); !config.empty()) {
    return {read_model_config_file(config), str("the cache of huggingface_hub: ", config)};
  }
  if (std::optional<ModelConfig> known = known_model(name)) return {*known, "the table of known shapes"};
  std::vector<std::string> names;
  for (const KnownModel& known : kKnown) names.emplace_back(known.name);
  throw Error(ErrorKind::path,
              str(printable(name, 400), ": no such checkpoint directory",
                  is_hub_name(name) ? ", not in the cache of huggingface_hub, and none of the known shapes"
                                    : ", and no known shape",
                  "; nothing is fetched: give a directory with its config.json, or one of ", join(names, ", "),
                  did_you_mean(plain_name(name), names)));
}

}  // namespace ucas

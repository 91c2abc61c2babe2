#include "cli/gguf_export.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/str.h"
#include "hf/adapter.h"
#include "hf/gguf/gguf_model.h"
#include "hf/parameters.h"
#include "text/tokenizer/tokenizer_writer.h"

namespace ucas {

namespace {

constexpr uint32_t kQuantizationVersion = 2;

uint32_t natural_of(int64_t value) { return static_cast<uint32_t>(value); }

class GgufEntries {
 public:
  explicit GgufEntries(std::string architecture) : architecture_(std::move(architecture)) {}
  void general(const char* key, GgufEntryValue value) { put(str("general.", key), std::move(value)); }
  void model(const char* key, GgufEntryValue value) { put(str(architecture_, ".", key), std::move(value)); }
  void tokenizer(const char* key, GgufEntryValue value) { put(str("tokenizer.", key), std::move(value)); }
  void id(const char* key, std::optional<int64_t> value) {
    if (value && *value >= 0) put(str("tokenizer.ggml.", key), natural_of(*value));
  }
  std::vector<GgufEntry> list;

 private:
  void put(std::string key, GgufEntryValue value) { list.emplace_back(std::move(key), std::move(value)); }
  std::string architecture_;
};

[[noreturn]] void refuse_export(const std::string& directory, const std::string& what) {
  throw Error(ErrorKind::unsupported, str(printable(directory, 400), ": ", what));
}

// GGML has Mistral's models as llama.
std::string architecture_of(const ModelConfig& config, const std::string& directory) {
  const std::string type = config.family->model_type;
  if (config.family->block.norms_after)
    refuse_export(directory,
                  str(config.family->title, " is not exported to GGUF; llama, mistral, qwen2 and qwen3 are"));
  if (std::ranges::any_of(config.windows, [](int64_t window) { return window > 0; })) {
    refuse_export(directory, "layers with a sliding window, which a GGUF file of this architecture cannot say");
  }
  if (type == "mistral") return "llama";
  return type;
}

void add_rope(const RopeConfig& rope, const std::string& directory, GgufEntries& entries) {
  entries.model("rope.freq_base", static_cast<float>(rope.theta));
  if (rope.kind != RopeKind::linear && rope.kind != RopeKind::yarn) return;
  entries.model("rope.scaling.type", std::string(rope.kind == RopeKind::linear ? "linear" : "yarn"));
  entries.model("rope.scaling.factor", static_cast<float>(rope.factor));
  if (rope.kind == RopeKind::linear) return;
  if (rope.attention_factor || rope.mscale || rope.mscale_all_dim || !rope.truncate) {
    refuse_export(directory, "a yarn scaling with attention_factor, mscale or truncate, which GGUF says otherwise");
  }
  entries.model("rope.scaling.original_context_length", natural_of(rope.original_max_position_embeddings));
  if (rope.beta_fast != 32) entries.model("rope.scaling.yarn_beta_fast", static_cast<float>(rope.beta_fast));
  if (rope.beta_slow != 1) entries.model("rope.scaling.yarn_beta_slow", static_cast<float>(rope.beta_slow));
}

void add_tokenizer(const ModelConfig& config, const std::string& directory, GgufEntries& entries) {
  TokenizerTablesOfOthers tables = tables_for_others(directory_with(directory, "tokenizer.json"), config.vocab_size);
  std::vector<int32_t> kinds;
  for (TokenKind kind : tables.kinds) kinds.push_back(static_cast<int32_t>(kind));
  const int64_t end = tables.end ? *tables.end : config.eos_token_id.empty() ? -1 : config.eos_token_id.front();
  entries.tokenizer("ggml.model", std::string("gpt2"));
  entries.tokenizer("ggml.pre", tables.pre);
  entries.tokenizer("ggml.tokens", std::move(tables.tokens));
  entries.tokenizer("ggml.token_type", std::move(kinds));
  entries.tokenizer("ggml.merges", std::move(tables.merges));
  entries.id("bos_token_id", tables.begin ? tables.begin : config.bos_token_id);
  entries.id("eos_token_id", end);
  // Every token that ends a response in a training: GGUF has a name for three of them.
  const char* more[] = {"eot_token_id", "eom_token_id"};
  size_t next = 0;
  for (int32_t id : config.eos_token_id) {
    if (id != end && next < std::size(more)) entries.id(more[next++], id);
  }
  entries.id("unknown_token_id", tables.unknown);
  entries.id("padding_token_id", tables.pad ? tables.pad : config.pad_token_id);
  entries.tokenizer("ggml.add_bos_token", tables.begins.value_or(false));
  if (tables.ends.value_or(false)) entries.tokenizer("ggml.add_eos_token", true);
  if (!tables.chat_template.empty()) entries.tokenizer("chat_template", tables.chat_template);
}

std::vector<GgufEntry> entries_of(const ModelConfig& config, const std::string& directory, const std::string& name,
                                  GgufStorage storage) {
  GgufEntries entries(architecture_of(config, directory));
  entries.general("architecture", architecture_of(config, directory));
  entries.general("type", std::string("model"));
  entries.general("name", name);
  entries.model("block_count", natural_of(config.num_hidden_layers));
  entries.model("context_length", natural_of(config.max_position_embeddings));
  entries.model("embedding_length", natural_of(config.hidden_size));
  entries.model("feed_forward_length", natural_of(config.intermediate_size));
  entries.model("attention.head_count", natural_of(config.num_attention_heads));
  entries.model("attention.head_count_kv", natural_of(config.num_key_value_heads));
  add_rope(config.rope, directory, entries);
  entries.model("attention.layer_norm_rms_epsilon", static_cast<float>(config.rms_norm_eps));
  entries.model("attention.key_length", natural_of(config.head_dim));
  entries.model("attention.value_length", natural_of(config.head_dim));
  entries.general("file_type", gguf_file_type(storage));
  entries.model("vocab_size", natural_of(config.vocab_size));
  entries.model("rope.dimension_count", natural_of(config.head_dim));
  entries.general("quantization_version", kQuantizationVersion);
  add_tokenizer(config, directory, entries);
  return entries.list;
}

}  // namespace

void export_gguf(const std::string& directory, const std::string& path, const std::string& name, GgufStorage storage) {
  if (is_adapter(directory)) {
    refuse_export(directory,
                  str("an adapter; `ucas export ", printable(directory, 200),
                      " --out WHOLE` adds it to its base, and `ucas export WHOLE --format gguf` takes that"));
  }
  const ModelConfig config = read_model_config(directory);
  const StoredByName stored = stored_by_name(list_weights(directory), directory);
  check_parameters(config, stored, directory);
  const std::vector<GgufEntry> entries = entries_of(config, directory, name, storage);
  const bool interleaved = architecture_of(config, directory) == "llama";
  std::vector<GgufTensorToWrite> tensors;
  for (const ParameterShape& p : parameter_shapes(config)) {
    const StoredTensor& tensor = stored.at(p.module + p.kind);
    const bool turned = interleaved && (p.module.ends_with(".q_proj") || p.module.ends_with(".k_proj"));
    const int64_t columns = tensor.shape.back(), head_dim = turned ? config.head_dim : 0;
    tensors.push_back({p.gguf + p.kind, p.shape(), [&tensor, columns, head_dim](float* out) {
                         read_as_f32(tensor, out);
                         if (head_dim > 0) interleave_rows(out, tensor.elements() / columns, columns, head_dim);
                       }});
  }
  if (config.rope.kind == RopeKind::llama3) {
    tensors.push_back({kGgufRopeFactors, {config.head_dim / 2}, [&config](float* out) {
                         const std::vector<double> factors = llama3_factors(config.rope, config.head_dim);
                         std::ranges::transform(factors, out, [](double f) { return static_cast<float>(f); });
                       }});
  }
  write_gguf(path, entries, tensors, storage);
}

}  // namespace ucas

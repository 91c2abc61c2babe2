// Checkpoint directories in and out, and random initialisation.
#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "hf/parameters.h"
#include "model/stored.h"
#include "model/transformer.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

// Fills a CPU f32 tensor, then moves the values where the parameter lives, in its type.
template <class Fill>
void fill_parameter(const at::Tensor& parameter, Fill fill) {
  at::Tensor target = parameter.detach();
  if (target.device().is_cpu() && target.scalar_type() == at::kFloat) {
    fill(target.data_ptr<float>());
    return;
  }
  at::Tensor staging = at::empty(target.sizes(), at::kFloat);
  fill(staging.data_ptr<float>());
  target.copy_(staging);
}

// Reads a tensor into out[elements()].
void read_finite(const StoredTensor& stored, float* out) {
  read_as_f32(stored, out);
  const std::span<const float> values(out, static_cast<size_t>(stored.elements()));
  const int64_t bad = first_not_finite(values);
  if (bad < 0) return;
  throw Error(
      ErrorKind::numeric,
      str(stored.file, ": tensor ", printable(stored.name), ": value ", bad, " of ", values.size(), " is ", values[bad],
          ": weights must be finite; the training that made them diverged, or the file is damaged: "
          "use another checkpoint"));
}

// Which masters of a base stay here, by its parameters.
struct Kept {
  bool some = false;  // false: all, whatever `parameter` says
  std::vector<bool> parameter = {};
  bool has(size_t i) const { return !some || parameter[i]; }
};

Kept kept_masters(const Weights& shapes, const KeptMasters& keeps) {
  Kept kept{.some = keeps != nullptr && !shapes.copies.empty()};
  if (!kept.some) return kept;
  std::vector<NamedTensor> trained;
  for (const auto* list : {&shapes.parameters, &shapes.adapter})
    std::ranges::copy_if(*list, std::back_inserter(trained), [](const auto& p) { return p.tensor.requires_grad(); });
  const std::vector<bool> here = keeps(trained);
  size_t next = 0;
  for (const NamedTensor& p : shapes.parameters)
    kept.parameter.push_back(p.tensor.requires_grad() ? here[next++] : true);
  return kept;
}

const Bf16Copy* copy_of(const Weights& weights, const at::Tensor& master) {
  const auto found =
      std::ranges::find_if(weights.copies, [&](const auto& copy) { return copy.master.is_same(master); });
  return found == weights.copies.end() ? nullptr : &*found;
}

int64_t bytes_of(const Weights& weights, const Kept& kept) {
  int64_t bytes = 0;
  for (size_t i = 0; i < weights.parameters.size(); ++i) {
    const at::Tensor& parameter = weights.parameters[i].tensor;
    const bool elsewhere = !kept.has(i) && copy_of(weights, parameter) != nullptr;
    if (!elsewhere) bytes += static_cast<int64_t>(parameter.nbytes());
  }
  for (const NamedTensor& p : weights.adapter) bytes += static_cast<int64_t>(p.tensor.nbytes());
  for (const Bf16Copy& copy : weights.copies) bytes += static_cast<int64_t>(copy.compute.nbytes());
  return bytes;
}

// Against what the machine has: a consistent file can ask for more than can be had.
void check_memory(const Weights& shapes, const Kept& kept, const ModelConfig& config, const std::string& directory) {
  const auto needed = static_cast<double>(bytes_of(shapes, kept));
  const double there = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed <= there) return;
  throw Error(ErrorKind::limit,
              str(directory, ": ", grouped(config.parameter_count()), " weights take ", human_bytes(needed),
                  ", this machine has ", human_bytes(there), " of memory; use a smaller model"));
}

// transformers ties by config alone; a tied checkpoint with another head would silently lose it.
void check_tied_head(const StoredTensor& head, const Matrix& matrix) {
  const at::Tensor& embed = has_values(matrix.parameter) ? matrix.parameter : matrix.compute;
  at::Tensor values = at::empty(embed.sizes(), at::kFloat);
  read_finite(head, values.data_ptr<float>());
  if (!values.to(embed.scalar_type()).equal(embed.detach().cpu()))
    throw Error(ErrorKind::config, str(head.file,
                                       ": tie_word_embeddings is true, but lm_head.weight differs from "
                                       "model.embed_tokens.weight; set it to false to use both"));
}

// "model.norm.weight" -> "model.norm"
std::string module_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

void fill_from(const StoredTensor& stored, const at::Tensor& parameter) {
  UCAS_CHECK(at::IntArrayRef(stored.shape) == parameter.sizes(), "shapes were checked against the config");
  fill_parameter(parameter, [&](float* out) { read_finite(stored, out); });
}

// The i-th parameter; of one whose master other ranks keep its bf16 copy alone.
void fill_from(const StoredTensor& stored, Weights& weights, size_t i, const Kept& kept) {
  const at::Tensor& parameter = weights.parameters[i].tensor;
  const Bf16Copy* copy = kept.some ? copy_of(weights, parameter) : nullptr;
  if (copy == nullptr) return fill_from(stored, parameter);
  if (kept.has(i)) {
    allocate_values(parameter);
    fill_from(stored, parameter);
    return copy->refresh();
  }
  fill_from(stored, copy->compute);
}

// The base, as its directory holds it.
Weights load_base(const ModelConfig& config, const std::string& directory, at::Device device,
                  const ModelOptions& options, const KeptMasters& keeps, Kept& kept) {
  std::vector<StoredTensor> tensors = list_weights(directory);
  unwrap(tensors);
  const StoredByName stored = stored_by_name(text_tensors(std::move(tensors), config, directory), directory);
  check_parameters(config, stored, directory);  // config.json alone must not make us take memory
  const Weights shapes = allocate_weights(config, at::Device(at::kMeta), options);  // meta tensors have no storage
  if (computes_by_hand(config, device, options)) kept = kept_masters(shapes, keeps);
  if (device.is_cpu()) check_memory(shapes, kept, config, directory);
  Weights weights = allocate_weights(config, device, options, !kept.some);
  for (size_t i = 0; i < weights.parameters.size(); ++i)
    fill_from(stored.at(weights.parameters[i].name), weights, i, kept);
  if (auto head = stored.find("lm_head.weight"); config.tie_word_embeddings && head != stored.end())
    check_tied_head(head->second, weights.embed);
  return weights;
}

constexpr const char* kEmbedding = "model.embed_tokens";

bool trains_tied_embedding(const ModelConfig& config, const LoraConfig& lora) {
  return config.tie_word_embeddings && is_saved_whole(lora, kEmbedding);
}

// An adapter's matrices, and parameters trained whole with them, over the base's values.
void load_adapter(Weights& weights, const PeftAdapter& adapter, const ModelConfig& config, const Kept& kept,
                  const std::string& directory) {
  if (trains_tied_embedding(config, adapter.lora) && !adapter.ties) {
    throw Error(ErrorKind::unsupported,
                str(directory, ": modules_to_save has the embedding, which is the LM head too in ", adapter.base,
                    " (tie_word_embeddings), but ensure_weight_tying is not true: peft ",
                    "computes with two matrices then; merge the adapter with peft and load the result"));
  }
  const StoredByName stored = stored_by_name(read_safetensors_header(adapter_file(directory)), directory);
  check_adapter(adapter, config, stored, directory);
  for (const NamedTensor& p : weights.adapter) fill_from(stored.at(p.name), p.tensor);
  for (size_t i = 0; i < weights.parameters.size(); ++i) {
    const std::string& name = weights.parameters[i].name;
    if (is_saved_whole(adapter.lora, module_of(name))) fill_from(stored.at(kPeftPrefix + name), weights, i, kept);
  }
  if (auto head = stored.find(str(kPeftPrefix, "lm_head.weight")); adapter.ties && head != stored.end())
    check_tied_head(head->second, weights.embed);
}

LoraConfig sorted(LoraConfig lora) {
  std::ranges::sort(lora.target_modules);
  std::ranges::sort(lora.modules_to_save);
  return lora;
}

// Warnings of a directory's own adapter.
ModelOptions options_with(const PeftAdapter& adapter, const ModelOptions& asked, const std::string& directory) {
  ModelOptions options = asked;
  if (asked.lora.on() && !(sorted(asked.lora) == sorted(adapter.lora))) {
    throw Error(ErrorKind::config, str(directory, ": holds an adapter of rank ", adapter.lora.rank, ", alpha ",
                                       adapter.lora.alpha, " on ", join(adapter.lora.target_modules, ", "),
                                       ", which trains as it is; leave lora.* out, or merge it first (ucas export)"));
  }
  options.lora = adapter.lora;
  options.base = adapter.base;
  return options;
}

}  // namespace

std::unique_ptr<Model> load_model(const std::string& directory, at::Device device, const ModelOptions& asked) {
  return load_model(directory, device, asked, nullptr);
}

std::unique_ptr<Model> load_model(const std::string& directory, at::Device device, const ModelOptions& asked,
                                  const KeptMasters& keeps) {
  const std::optional<PeftAdapter> adapter = find_adapter(directory);
  ModelOptions options = adapter ? options_with(*adapter, asked, directory) : asked;
  if (!adapter) options.base = directory;
  if (options.lora.on() && options.trained == Trained::all) options.trained = Trained::adapter;
  if (adapter && adapter->dropout > 0 && options.trained != Trained::none) {
    ucas::warn(str(path_join(directory, kAdapterConfig), ": lora_dropout = ", adapter->dropout,
                   " is ignored: ucas trains adapters without dropout, so this adapter trains with 0"));
  }
  const ModelConfig config = read_model_config(options.base);
  Kept kept;
  Weights weights = load_base(config, options.base, device, options, keeps, kept);
  if (adapter) load_adapter(weights, *adapter, config, kept, directory);
  return make_transformer(config, std::move(weights), options);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed, at::Device device,
                                  const ModelOptions& options) {
  Weights weights = allocate_weights(config, device, options);
  double residual = 1 / std::sqrt(2.0 * static_cast<double>(config.num_hidden_layers));
  uint64_t stream = 0;
  for (const NamedTensor& parameter : weights.parameters) {
    const std::string& name = parameter.name;
    Rng rng(seed, stream++);
    double fan_in = static_cast<double>(parameter.tensor.size(-1));
    double sigma = name.ends_with("embed_tokens.weight") ? 0.02 : 1 / std::sqrt(fan_in);
    if (name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight")) sigma *= residual;
    if (name.ends_with(".bias")) sigma = 0;
    bool is_norm = name.ends_with("norm.weight");
    const float unit = config.family->block.norm_offset ? 0.0f : 1.0f;  // a norm that multiplies by 1
    int64_t count = parameter.tensor.numel();
    fill_parameter(parameter.tensor, [&](float* out) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = is_norm ? unit : sigma == 0 ? 0.0f : static_cast<float>(sigma * rng.normal());
    });
  }
  return make_transformer(config, std::move(weights), options);
}

std::vector<NamedTensor> stored_tensors(Model& model) {
  if (model.adapter().empty()) return model.parameters();
  std::vector<NamedTensor> tensors = model.adapter();
  for (const NamedTensor& p : model.parameters()) {
    if (is_saved_whole(model.options().lora, module_of(p.name))) tensors.push_back({kPeftPrefix + p.name, p.tensor});
    const bool head_too =
        module_of(p.name) == kEmbedding && trains_tied_embedding(model.config(), model.options().lora);
    if (head_too) tensors.push_back({str(kPeftPrefix, "lm_head.weight"), p.tensor});  // PEFT looks for it
  }
  return tensors;
}

std::string stored_dtype(Model& model) { return model.adapter().empty() ? model.config().torch_dtype : "float32"; }

std::vector<NamedTensor> tensors_saved(Model& model) {
  std::vector<NamedTensor> saved = stored_tensors(model);
  if (stored_dtype(model) == "bfloat16") {
    for (const Bf16Copy& copy : model.bf16_copies())
      for (NamedTensor& t : saved)
        if (!has_values(t.tensor) && copy.master.is_same(t.tensor)) t.tensor = copy.compute;
  }
  return saved;
}

void save_model(Model& model, const std::string& directory, const std::string& like, const MasterValues& values,
                int64_t shard_bytes) {
  write_model_config(model.config(), directory, like);
  const std::string dtype = stored_dtype(model);
  const std::vector<TensorToStore> tensors = tensors_to_store(tensors_saved(model), values);
  if (model.adapter().empty()) {
    write_weights(directory, tensors, dtype, shard_bytes);
  } else {
    const LoraConfig& lora = model.options().lora;
    write_adapter_config({lora, model.options().base, trains_tied_embedding(model.config(), lora)}, directory);
    write_safetensors(adapter_file(directory), tensors);
  }
  if (!like.empty()) copy_tokenizer_files(like, directory);
}

void save_model(Model& model, const std::string& directory, const std::string& like, int64_t shard_bytes) {
  save_model(model, directory, like, MasterValues(), shard_bytes);
}

}  // namespace ucas

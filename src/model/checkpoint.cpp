// Checkpoint directories in and out, and random initialisation.
#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "hf/safetensors.h"
#include "model/finite.h"
#include "model/stored.h"
#include "model/transformer.h"
#include "text/tokenizer.h"

namespace ucas {

namespace {

std::string shape_text(at::IntArrayRef shape) {
  std::vector<std::string> parts;
  for (int64_t size : shape) parts.push_back(str(size));
  return "[" + join(parts, ", ") + "]";
}

// Buffers that old checkpoints carry and nobody needs.
bool ignorable(const std::string& name) { return name.ends_with(".self_attn.rotary_emb.inv_freq"); }

// Fills a CPU f32 tensor, then moves the values where the parameter lives.
template <class Fill>
void fill_parameter(const at::Tensor& parameter, Fill fill) {
  at::Tensor target = parameter.detach();
  if (target.device().is_cpu()) {
    fill(target.data_ptr<float>());
    return;
  }
  at::Tensor staging = target.cpu();
  fill(staging.data_ptr<float>());
  target.copy_(staging);
}

void check_shape(const StoredTensor& stored, at::IntArrayRef expected) {
  if (at::IntArrayRef(stored.shape) != expected)
    throw Error("shape", str(stored.file, ": tensor ", printable(stored.name), ": shape ", shape_text(stored.shape),
                             ", config.json asks for ", shape_text(expected)));
}

// Reads a tensor into out[elements()].
void read_finite(const StoredTensor& stored, float* out) {
  read_as_f32(stored, out);
  const std::span<const float> values(out, static_cast<size_t>(stored.elements()));
  const int64_t bad = first_not_finite(values);
  if (bad < 0) return;
  throw Error("numeric", str(stored.file, ": tensor ", printable(stored.name), ": value ", bad, " of ", values.size(),
                             " is ", values[bad],
                             ": weights must be finite; the training that made them diverged, or the file is damaged: "
                             "use another checkpoint"));
}

// As f32, against what the machine has: a consistent file can ask for more than can be had.
void check_memory(const ModelConfig& config, const std::string& directory) {
  const double needed = 4 * static_cast<double>(config.parameter_count());
  const double there = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed <= there) return;
  throw Error("limit", str(directory, ": ", grouped(config.parameter_count()), " weights take ", human_bytes(needed),
                           " in f32, this machine has ", human_bytes(there), " of memory; use a smaller model"));
}

// transformers ties by config alone; a tied checkpoint with another head would silently lose it.
void check_tied_head(const StoredTensor& head, const at::Tensor& embed) {
  check_shape(head, embed.sizes());
  std::vector<float> values(head.elements());
  read_finite(head, values.data());
  at::Tensor host = embed.detach().cpu();
  if (!std::equal(values.begin(), values.end(), host.data_ptr<float>()))
    throw Error("config", str(head.file,
                              ": tie_word_embeddings is true, but lm_head.weight differs from "
                              "model.embed_tokens.weight; set it to false to use both"));
}

// Every tensor's name and shape, before the first allocation: config.json alone must not make us take memory.
void check_all_there(const ModelConfig& config, const std::map<std::string, StoredTensor>& stored,
                     const std::string& directory) {
  if (config.num_hidden_layers > static_cast<int64_t>(stored.size()))
    throw Error("missing_tensor", str(directory, ": config.json asks for ", config.num_hidden_layers,
                                      " layers, the files hold ", stored.size(), " tensors"));
  Weights shapes = allocate_weights(config, at::Device(at::kMeta));  // meta tensors have no storage
  for (const NamedTensor& parameter : shapes.parameters) {
    auto found = stored.find(parameter.name);
    if (found == stored.end())
      throw Error("missing_tensor", str(directory, ": tensor ", parameter.name, " ",
                                        shape_text(parameter.tensor.sizes()), " is missing"));
    check_shape(found->second, parameter.tensor.sizes());
  }
}

}  // namespace

std::unique_ptr<Model> load_model(const std::string& directory, at::Device device) {
  ModelConfig config = read_model_config(directory);
  std::map<std::string, StoredTensor> stored;
  for (StoredTensor& t : list_weights(directory)) {
    std::string name = t.name;
    if (auto [it, fresh] = stored.emplace(name, std::move(t)); !fresh)
      throw Error("dup_key", str(directory, ": tensor ", printable(name), " stands in two files"));
  }
  check_all_there(config, stored, directory);
  if (device.is_cpu()) check_memory(config, directory);
  Weights weights = allocate_weights(config, device);
  for (const NamedTensor& parameter : weights.parameters) {
    auto it = stored.find(parameter.name);
    fill_parameter(parameter.tensor, [&](float* out) { read_finite(it->second, out); });
    stored.erase(it);
  }
  if (auto head = stored.find("lm_head.weight"); head != stored.end()) {
    check_tied_head(head->second, weights.embed);
    stored.erase(head);
  }
  for (const auto& [name, t] : stored)
    if (!ignorable(name))
      throw Error("unexpected_tensor", str(t.file, ": tensor ", printable(name), " is none of a ", config.family->title,
                                           " model with ", config.num_hidden_layers, " layers"));
  return make_transformer(config, std::move(weights));
}

std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed, at::Device device) {
  Weights weights = allocate_weights(config, device);
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
    int64_t count = parameter.tensor.numel();
    fill_parameter(parameter.tensor, [&](float* out) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = is_norm ? 1.0f : sigma == 0 ? 0.0f : static_cast<float>(sigma * rng.normal());
    });
  }
  return make_transformer(config, std::move(weights));
}

void save_model(Model& model, const std::string& directory, const std::string& like, int64_t shard_bytes) {
  write_model_config(model.config(), directory, like);
  write_weights(directory, tensors_to_store(model.parameters()), model.config().torch_dtype, shard_bytes);
  if (!like.empty()) copy_tokenizer_files(like, directory);
}

}  // namespace ucas

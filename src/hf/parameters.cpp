#include "hf/parameters.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

constexpr std::string_view kLayers = "model.layers.";

std::string sizes_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (int64_t size : shape) parts.push_back(str(size));
  return "[" + join(parts, ", ") + "]";
}

// Unused buffers of old checkpoints.
bool is_buffer(const std::string& name) { return name.ends_with(".self_attn.rotary_emb.inv_freq"); }

// How many layers have tensors of their own.
int64_t layers_in(const StoredByName& stored) {
  std::set<std::string_view> layers;
  for (const auto& [name, tensor] : stored) {
    if (!name.starts_with(kLayers) || is_buffer(name)) continue;
    const std::string_view rest = std::string_view(name).substr(kLayers.size());
    layers.insert(rest.substr(0, rest.find('.')));
  }
  return static_cast<int64_t>(layers.size());
}

// torch.compile, data parallelism and models of several modalities put a name before every tensor's.
constexpr std::string_view kWrappers[] = {"module.", "_orig_mod.", "module.", "language_model.",
                                          "model.language_model."};

void refuse_wrapped(const StoredByName& stored, const std::string& directory) {
  for (std::string_view prefix : kWrappers) {
    const auto found = stored.lower_bound(std::string(prefix));
    if (found == stored.end() || !found->first.starts_with(prefix)) continue;
    throw Error(ErrorKind::unexpected_tensor,
                str(directory, ": tensor ", printable(found->first), ": its name begins with \"", prefix,
                    "\", as of a model inside of another; expected model.embed_tokens.weight and so on: ucas loads it "
                    "where all tensors have this name before theirs, others do not: save the inner model"));
  }
}

void check_one(const StoredByName& stored, const std::string& name, const std::vector<int64_t>& shape,
               const std::string& directory, const char* asked_by, ErrorKind kind) {
  const auto found = stored.find(name);
  if (found == stored.end()) {
    throw Error(ErrorKind::missing_tensor,
                str(directory, ": tensor ", name, " ", sizes_text(shape), " is missing; ", asked_by, " asks for it"));
  }
  if (found->second.shape != shape) {
    throw Error(kind, str(found->second.file, ": tensor ", name, ": shape ", sizes_text(found->second.shape), ", ",
                          asked_by, " asks for ", sizes_text(shape)));
  }
}

}  // namespace

std::vector<ParameterShape> parameter_shapes(const ModelConfig& c) {
  std::vector<ParameterShape> list = {{"model.embed_tokens", ".weight", c.vocab_size, c.hidden_size, false}};
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    visit_block(c, [&, prefix = layer_prefix(layer)](const BlockParameter& p) {
      list.push_back({prefix + p.name, ".weight", p.rows, p.columns, !p.is_norm()});
      if (p.bias) list.push_back({prefix + p.name, ".bias", 0, p.rows, false});
    });
  }
  list.push_back({"model.norm", ".weight", 0, c.hidden_size, false});
  if (!c.tie_word_embeddings) list.push_back({"lm_head", ".weight", c.vocab_size, c.hidden_size, false});
  return list;
}

std::vector<StoredTensor> text_tensors(std::vector<StoredTensor> list, const ModelConfig& config,
                                       const std::string& directory) {
  if (!config.inside) return list;
  const size_t all = list.size();
  for (StoredTensor& tensor : list) {
    for (const std::string_view outer : {"language_model.model.", "model.language_model.", "language_model."}) {
      if (!tensor.name.starts_with(outer)) continue;
      const std::string inner = tensor.name.substr(outer.size());
      tensor.name = inner.starts_with("lm_head.") ? inner : str("model.", inner);
      break;
    }
  }
  std::erase_if(list, [](const StoredTensor& tensor) {
    return std::ranges::none_of(
        std::vector<std::string_view>{kLayers, "model.embed_tokens.", "model.norm.", "lm_head."},
        [&](std::string_view part) { return tensor.name.starts_with(part); });
  });
  static std::once_flag said;
  std::call_once(said, [&] {
    log(str(directory, ": the text model of several; ", all - list.size(),
            " tensors of the others are left alone; what is saved, and what an adapter is of, is a ",
            config.family->title, " model"));
  });
  return list;
}

StoredByName stored_by_name(std::vector<StoredTensor> list, const std::string& directory) {
  StoredByName stored;
  for (StoredTensor& t : list) {
    const std::string name = t.name;
    if (!stored.emplace(name, std::move(t)).second)
      throw Error(ErrorKind::dup_key, str(directory, ": tensor ", printable(name), " is in two files"));
  }
  return stored;
}

void unwrap(std::vector<StoredTensor>& tensors) {
  for (std::string_view prefix : kWrappers) {
    const bool inner = prefix.starts_with("model.");
    const auto has_it = [&](const StoredTensor& t) { return t.name.starts_with(prefix); };
    const auto fits = [&](const StoredTensor& t) { return has_it(t) || (inner && t.name == "lm_head.weight"); };
    if (!std::ranges::all_of(tensors, fits)) continue;
    for (StoredTensor& t : tensors) {
      if (has_it(t)) t.name.replace(0, prefix.size(), inner ? "model." : "");
    }
  }
}

void check_parameters(const ModelConfig& config, const StoredByName& stored, const std::string& directory) {
  refuse_wrapped(stored, directory);
  if (const int64_t layers = layers_in(stored); layers != config.num_hidden_layers) {
    throw Error(ErrorKind::config, str(directory, ": config.json says num_hidden_layers = ", config.num_hidden_layers,
                                       ", the files hold tensors of ", layers, " layers (", kLayers, "N)"));
  }
  const std::vector<ParameterShape> shapes = parameter_shapes(config);
  std::set<std::string> known = {"lm_head.weight"};
  for (const ParameterShape& p : shapes) {
    check_one(stored, p.module + p.kind, p.shape(), directory, "config.json", ErrorKind::config);
    known.insert(p.module + p.kind);
  }
  if (config.tie_word_embeddings && stored.contains("lm_head.weight"))
    check_one(stored, "lm_head.weight", shapes.front().shape(), directory, "config.json", ErrorKind::config);
  for (const auto& [name, tensor] : stored) {
    if (!known.contains(name) && !is_buffer(name))
      throw Error(ErrorKind::unexpected_tensor,
                  str(tensor.file, ": tensor ", printable(name), " is none of a ", config.family->title, " model"));
  }
}

void check_adapter(const PeftAdapter& adapter, const ModelConfig& base, const StoredByName& stored,
                   const std::string& directory) {
  const LoraConfig& lora = adapter.lora;
  std::set<std::string> known;
  const auto expect = [&](const std::string& name, const std::vector<int64_t>& shape) {
    check_one(stored, kPeftPrefix + name, shape, directory, kAdapterConfig, ErrorKind::shape);
    known.insert(kPeftPrefix + name);
  };
  for (const ParameterShape& p : parameter_shapes(base)) {
    if (is_saved_whole(lora, p.module)) expect(p.module + p.kind, p.shape());
    if (!p.linear || !is_adapted(lora, p.module)) continue;
    expect(p.module + ".lora_A.weight", {lora.rank, p.columns});
    expect(p.module + ".lora_B.weight", {p.rows, lora.rank});
  }
  if (adapter.ties && stored.contains(str(kPeftPrefix, "lm_head.weight"))) {
    expect("lm_head.weight", parameter_shapes(base).front().shape());
  }
  for (const auto& [name, tensor] : stored) {
    if (!known.contains(name))
      throw Error(ErrorKind::unexpected_tensor, str(tensor.file, ": tensor ", printable(name),
                                                    " is none of this adapter (adapter_config.json) on this base"));
  }
}

}  // namespace ucas

#include "model/weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "hf/peft.h"

namespace ucas {

namespace {

constexpr uint64_t kAdapterStream = 0x4c6f5241;  // of the first A's initial values

// "model.layers.3.mlp.up_proj" -> "up_proj"
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// On huge pages where the system gives them on request: decoding a few responses reads all weights in every step, which
// took a seventh longer on pages of 4 KiB.
at::Tensor in_huge_pages(at::Tensor fresh) {
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  if (!fresh.is_cpu()) return fresh;
  const auto begin = reinterpret_cast<uintptr_t>(fresh.mutable_data_ptr());
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage, end = (begin + fresh.nbytes()) / kPage * kPage;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  return fresh;
}

// Makes leaves one after another and lists them by name.
class Allocator {
 public:
  Allocator(at::Device device, const ModelOptions& options, Weights& to)
      : device_(device), options_(options), to_(to) {}

  // A vector: a norm's or a bias.
  at::Tensor vector(const std::string& module, const char* kind, int64_t size) {
    return own(module, kind, at::empty({size}, of(at::kFloat)));
  }

  Matrix matrix(const std::string& module, int64_t rows, int64_t columns) {
    Matrix m;
    m.compute = in_huge_pages(at::empty({rows, columns}, of(type())));
    m.leaf = leaf_of(module, m.compute);
    return m;
  }

  Linear linear(const std::string& prefix, std::initializer_list<std::pair<const char*, int64_t>> parts, int64_t inputs,
                bool bias = false) {
    int64_t rows = 0, first = 0;
    for (const auto& part : parts) rows += part.second;
    Linear linear;
    linear.weight = in_huge_pages(at::empty({rows, inputs}, of(type())));
    if (bias) linear.bias = at::empty({rows}, of(at::kFloat));
    for (const auto& [name, count] : parts) {
      const std::string module = prefix + name;
      Linear::Part& part = linear.parts.emplace_back();
      part.first = first;
      part.count = count;
      part.weight = leaf_of(module, linear.weight.narrow(0, first, count));
      if (bias) part.bias = own(module, ".bias", linear.bias.narrow(0, first, count).detach());
      part.adapter = adapter(module, count, inputs);
      first += count;
    }
    lay_side_by_side(linear, inputs);
    return linear;
  }

 private:
  at::TensorOptions of(at::ScalarType type) const { return at::TensorOptions().dtype(type).device(device_); }
  at::ScalarType type() const { return options_.dtype == Dtype::bf16 ? at::kBFloat16 : at::kFloat; }
  bool trains(const std::string& module) const {
    if (options_.trained != Trained::adapter) return options_.trained == Trained::all;
    return is_saved_whole(options_.lora, module);
  }

  at::Tensor leaf_of(const std::string& module, const at::Tensor& compute) {
    const bool copied = trains(module) && compute.scalar_type() != at::kFloat;
    const at::Tensor leaf =
        own(module, ".weight", copied ? at::empty(compute.sizes(), of(at::kFloat)) : compute.detach());
    if (copied) to_.copies.push_back({leaf, compute});
    return leaf;
  }

  at::Tensor own(const std::string& module, const char* kind, at::Tensor leaf) {
    leaf.set_requires_grad(trains(module));
    to_.parameters.push_back({module + kind, leaf});
    return leaf;
  }

  // A uniform in +- 1 / sqrt(in), B zero.
  Adapter adapter(const std::string& module, int64_t outputs, int64_t inputs) {
    const LoraConfig& lora = options_.lora;
    if (!is_adapted(lora, module)) return {};
    Adapter made;
    made.scale = lora.scale();
    auto leaf = [&](const char* kind, int64_t rows, int64_t columns) {
      at::Tensor tensor = at::empty({rows, columns}, of(at::kFloat));
      tensor.set_requires_grad(options_.trained == Trained::adapter);
      to_.adapter.push_back({str("base_model.model.", module, kind), tensor});
      return tensor;
    };
    made.a = leaf(".lora_A.weight", lora.rank, inputs);
    made.b = leaf(".lora_B.weight", outputs, lora.rank);
    made.b_compute = at::empty(made.b.sizes(), of(type()));
    if (device_.is_meta()) return made;
    at::Tensor host = at::empty(made.a.sizes(), at::kFloat);
    Rng rng(options_.seed, kAdapterStream + to_.adapter.size());
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    std::generate_n(host.mutable_data_ptr<float>(), host.numel(),
                    [&] { return static_cast<float>(bound * (2 * rng.uniform() - 1)); });
    made.a.detach().copy_(host);
    made.b.detach().zero_();
    return made;
  }

  // What GEMMs read of the adapters' A; each begins at an even row, for its columns of x A^T are read in pairs.
  void lay_side_by_side(Linear& linear, int64_t inputs) const {
    int64_t rows = 0;
    for (Linear::Part& part : linear.parts) {
      if (part.adapter.on()) part.adapter.first = std::exchange(rows, rows + (part.adapter.a.size(0) + 1) / 2 * 2);
    }
    if (rows == 0) return;
    linear.a_compute = at::zeros({rows, inputs}, of(type()));
    for (Linear::Part& part : linear.parts) {
      if (part.adapter.on())
        part.adapter.a_compute = linear.a_compute.narrow(0, part.adapter.first, part.adapter.a.size(0));
    }
  }

  at::Device device_;
  const ModelOptions& options_;
  Weights& to_;
};

// The matrices of all blocks, "model.layers.0.self_attn.q_proj" ..
std::vector<std::string> matrices_of_blocks(const ModelConfig& config) {
  std::vector<std::string> modules;
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    for (const std::string& name : adaptable_modules()) {
      const bool mlp = name.starts_with("gate") || name.starts_with("up") || name.starts_with("down");
      modules.push_back(str("model.layers.", i, mlp ? ".mlp." : ".self_attn.", name));
    }
  }
  return modules;
}

// Each name must name something.
void check_lora(const LoraConfig& lora, const ModelConfig& config) {
  if (!lora.on()) return;
  const std::vector<std::string> matrices = matrices_of_blocks(config);
  if (lora.target_modules.empty()) {
    throw Error(ErrorKind::config, str("lora.target_modules is empty: expected all-linear alone, or some of ",
                                       join(adaptable_modules(), ", ")));
  }
  for (const std::string& module : matrices) {
    if (is_saved_whole(lora, module) && is_adapted(lora, module)) {
      throw Error(ErrorKind::config,
                  str(module, ": in lora.target_modules and in lora.modules_to_save: expected in one of them"));
    }
  }
  for (const std::string& name : lora.target_modules) {
    if (lora.all_linear()) continue;
    const bool some = std::ranges::any_of(matrices, [&](const auto& module) { return names_module(name, module); });
    if (!some) {
      throw Error(ErrorKind::config,
                  str("lora.target_modules: \"", printable(name), "\": expected all-linear alone, or some of ",
                      join(adaptable_modules(), ", ")));
    }
  }
  for (const std::string& name : lora.modules_to_save) {
    const std::string last = last_part(name);
    const bool tied = last == "lm_head" && config.tie_word_embeddings;
    if (tied) {
      throw Error(ErrorKind::config,
                  "lora.modules_to_save: \"lm_head\" is the embedding matrix of this model "
                  "(tie_word_embeddings): name embed_tokens to train both");
    }
    const std::vector<std::string> known = {
        "lm_head", "embed_tokens", "norm", "input_layernorm", "post_attention_layernorm", "q_norm", "k_norm"};
    if (!std::ranges::count(known, last) && !std::ranges::count(adaptable_modules(), last)) {
      throw Error(ErrorKind::config, str("lora.modules_to_save: \"", printable(name), "\": expected some of ",
                                         join(known, ", "), ", ", join(adaptable_modules(), ", ")));
    }
  }
}

}  // namespace

void Weights::refresh() {
  for (const Bf16Copy& copy : copies) copy.refresh();
  for (const Layer& layer : layers) {
    for (const Linear* linear : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) {
      for (const Linear::Part& part : linear->parts) part.adapter.refresh();
    }
  }
}

void merge_adapter(Weights& weights) {
  at::NoGradGuard no_grad;
  for (Layer& layer : weights.layers) {
    for (Linear* linear : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) {
      for (Linear::Part& part : linear->parts) {
        const Adapter& adapter = part.adapter;
        if (!adapter.on()) continue;
        part.weight.copy_(part.weight.to(at::kFloat) + at::mm(adapter.b, adapter.a) * adapter.scale);
      }
    }
  }
  weights = without_adapter(weights);
  weights.refresh();
}

std::vector<at::Tensor> trained_leaves(const Layer& layer) {
  std::vector<at::Tensor> leaves;
  const auto add = [&leaves](const at::Tensor& leaf) {
    if (leaf.defined() && leaf.requires_grad()) leaves.push_back(leaf);
  };
  for (const at::Tensor& norm : {layer.input_norm, layer.q_norm, layer.k_norm, layer.post_norm}) add(norm);
  for (const Linear* linear : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) {
    for (const Linear::Part& part : linear->parts) {
      for (const at::Tensor& leaf : {part.weight, part.bias, part.adapter.a, part.adapter.b}) add(leaf);
    }
  }
  return leaves;
}

std::vector<Bf16Copy> trained_copies(const Weights& weights) {
  std::vector<Bf16Copy> copies = weights.copies;
  for (const Layer& layer : weights.layers) {
    for (const Linear* linear : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) {
      for (const Linear::Part& part : linear->parts) {
        if (part.adapter.on()) std::ranges::copy(part.adapter.copies(), std::back_inserter(copies));
      }
    }
  }
  std::erase_if(copies, [](const Bf16Copy& copy) { return !copy.master.requires_grad(); });
  return copies;
}

Weights without_adapter(const Weights& weights) {
  Weights base = weights;
  base.watch = nullptr;
  base.adapter.clear();
  for (Layer& layer : base.layers) {
    for (Linear* linear : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) {
      linear->a_compute = at::Tensor();
      for (Linear::Part& part : linear->parts) part.adapter = {};
    }
  }
  return base;
}

Weights allocate_weights(const ModelConfig& c, at::Device device, const ModelOptions& options) {
  check_lora(options.lora, c);
  Weights w;
  Allocator make(device, options, w);
  int64_t D = c.hidden_size, F = c.intermediate_size;
  int64_t query = c.num_attention_heads * c.head_dim, key = c.num_key_value_heads * c.head_dim;
  w.embed = make.matrix("model.embed_tokens", c.vocab_size, D);
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    std::string prefix = str("model.layers.", i, "."), attention = prefix + "self_attn.", mlp = prefix + "mlp.";
    Layer& layer = w.layers.emplace_back();
    layer.window = c.window(i);
    layer.input_norm = make.vector(prefix + "input_layernorm", ".weight", D);
    layer.qkv = make.linear(attention, {{"q_proj", query}, {"k_proj", key}, {"v_proj", key}}, D, c.family->qkv_bias);
    layer.out = make.linear(attention, {{"o_proj", D}}, query);
    if (c.family->qk_norm) {
      layer.q_norm = make.vector(attention + "q_norm", ".weight", c.head_dim);
      layer.k_norm = make.vector(attention + "k_norm", ".weight", c.head_dim);
    }
    layer.post_norm = make.vector(prefix + "post_attention_layernorm", ".weight", D);
    layer.gate_up = make.linear(mlp, {{"gate_proj", F}, {"up_proj", F}}, D);
    layer.down = make.linear(mlp, {{"down_proj", D}}, F);
  }
  w.norm = make.vector("model.norm", ".weight", D);
  w.head = c.tie_word_embeddings ? w.embed : make.matrix("lm_head", c.vocab_size, D);
  return w;
}

}  // namespace ucas

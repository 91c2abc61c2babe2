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
#include <span>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "hf/parameters.h"
#include "hf/peft.h"

namespace ucas {

namespace {

constexpr uint64_t kAdapterStream = 0x4c6f5241;  // of the first A's initial values

// "model.layers.3.mlp.up_proj" -> "up_proj"
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Where the system gives them on request: decoding a few responses reads all weights in every step, which took a
// seventh longer on pages of 4 KiB.
at::Tensor in_huge_pages(at::Tensor fresh) {
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  if (!fresh.is_cpu()) return fresh;
  const auto begin = reinterpret_cast<uintptr_t>(fresh.mutable_data_ptr());
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage, end = (begin + fresh.nbytes()) / kPage * kPage;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  return fresh;
}

// Makes parameters one after another and lists them by name.
class Allocator {
 public:
  Allocator(at::Device device, const ModelOptions& options, bool masters, Weights& to)
      : device_(device), options_(options), masters_(masters), to_(to) {}

  // A vector: a norm's or a bias.
  at::Tensor vector(const std::string& module, const char* kind, int64_t size) {
    return own(module, kind, at::empty({size}, of(at::kFloat)));
  }

  Matrix matrix(const std::string& module, int64_t rows, int64_t columns) {
    Matrix m;
    m.compute = in_huge_pages(at::empty({rows, columns}, of(type())));
    m.parameter = parameter_of(module, m.compute);
    return m;
  }

  // Parts of the same inputs, in one matrix.
  Linear linear(const std::string& prefix, std::span<const BlockParameter> parts) {
    int64_t rows = 0, first = 0;
    const int64_t inputs = parts[0].columns;
    const bool bias = parts[0].bias;
    for (const BlockParameter& part : parts) rows += part.rows;
    Linear linear;
    linear.weight = in_huge_pages(at::empty({rows, inputs}, of(type())));
    if (bias) linear.bias = at::empty({rows}, of(at::kFloat));
    for (const BlockParameter& parameter : parts) {
      const std::string module = prefix + parameter.name;
      const int64_t count = parameter.rows;
      Linear::Part& part = linear.parts.emplace_back();
      part.first = first;
      part.count = count;
      part.weight = parameter_of(module, linear.weight.narrow(0, first, count));
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

  at::Tensor parameter_of(const std::string& module, const at::Tensor& compute) {
    const bool copied = trains(module) && compute.scalar_type() != at::kFloat;
    const at::Tensor parameter =
        own(module, ".weight", copied ? at::empty(compute.sizes(), of(at::kFloat)) : compute.detach());
    if (copied) to_.copies.push_back({parameter, compute, 1});
    if (copied && !masters_) drop_values(parameter);
    return parameter;
  }

  at::Tensor own(const std::string& module, const char* kind, at::Tensor parameter) {
    parameter.set_requires_grad(trains(module));
    to_.parameters.push_back({module + kind, parameter});
    return parameter;
  }

  // A uniform in +- 1 / sqrt(in), B zero.
  Adapter adapter(const std::string& module, int64_t outputs, int64_t inputs) {
    const LoraConfig& lora = options_.lora;
    if (!is_adapted(lora, module)) return {};
    Adapter made;
    made.scale = lora.scale();
    auto matrix = [&](const char* kind, int64_t rows, int64_t columns) {
      at::Tensor tensor = at::empty({rows, columns}, of(at::kFloat));
      tensor.set_requires_grad(options_.trained == Trained::adapter);
      to_.adapter.push_back({str("base_model.model.", module, kind), tensor});
      return tensor;
    };
    made.a = matrix(".lora_A.weight", lora.rank, inputs);
    made.b = matrix(".lora_B.weight", outputs, lora.rank);
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
  const bool masters_;
  Weights& to_;
};

// The matrices of all blocks, "model.layers.0.self_attn.q_proj" ..
std::vector<std::string> matrices_of_blocks(const ModelConfig& config) {
  std::vector<std::string> modules;
  for (const ParameterShape& p : parameter_shapes(config))
    if (p.linear) modules.push_back(p.module);
  return modules;
}

// What modules_to_save may name besides: "lm_head", "embed_tokens", and the norms.
std::vector<std::string> other_modules(const ModelConfig& config) {
  std::vector<std::string> names = {"lm_head", "embed_tokens", "norm"};
  visit_block(config, [&](const BlockParameter& p) {
    if (p.is_norm()) names.push_back(last_part(p.name));
  });
  return names;
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
    const std::vector<std::string> known = other_modules(config);
    if (!std::ranges::count(known, last) && !std::ranges::count(adaptable_modules(), last)) {
      throw Error(ErrorKind::config, str("lora.modules_to_save: \"", printable(name), "\": expected some of ",
                                         join(known, ", "), ", ", join(adaptable_modules(), ", ")));
    }
  }
}

// Matrices that are rows of one (Layer::linear) follow each other.
void make_layer(Allocator& make, const std::string& prefix, const std::vector<BlockParameter>& parameters,
                Layer& layer) {
  for (size_t i = 0, end = 0; i < parameters.size(); i = end) {
    end = i + 1;
    const BlockParameter& p = parameters[i];
    if (p.is_norm()) {
      layer.norm(p.part) = make.vector(prefix + p.name, ".weight", p.columns);
      continue;
    }
    Linear& linear = layer.linear(p.part);
    while (end < parameters.size() && !parameters[end].is_norm() && &layer.linear(parameters[end].part) == &linear)
      ++end;
    linear = make.linear(prefix, std::span(parameters).subspan(i, end - i));
  }
}

}  // namespace

at::Tensor& Layer::norm(BlockPart part) {
  return part == BlockPart::attention_in    ? input_norm
         : part == BlockPart::q_norm        ? q_norm
         : part == BlockPart::k_norm        ? k_norm
         : part == BlockPart::attention_out ? attention_output_norm
         : part == BlockPart::mlp_in        ? mlp_norm
                                            : mlp_output_norm;
}

Linear& Layer::linear(BlockPart part) {
  if (part == BlockPart::query || part == BlockPart::key || part == BlockPart::value) return qkv;
  if (part == BlockPart::gate || part == BlockPart::up) return gate_up;
  return part == BlockPart::out ? out : down;
}

void Weights::refresh() {
  for (const Bf16Copy& copy : copies) copy.refresh();
  for (const Layer& layer : layers) {
    for (const Linear* linear : layer.linears()) {
      for (const Linear::Part& part : linear->parts) part.adapter.refresh();
    }
  }
}

void merge_adapter(Weights& weights) {
  at::NoGradGuard no_grad;
  for (Layer& layer : weights.layers) {
    for (Linear* linear : layer.linears()) {
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

std::vector<at::Tensor> trained_parameters(const Layer& layer) {
  std::vector<at::Tensor> parameters;
  const auto add = [&parameters](const at::Tensor& parameter) {
    if (parameter.defined() && parameter.requires_grad()) parameters.push_back(parameter);
  };
  for (const at::Tensor* norm : layer.norms()) add(*norm);
  for (const Linear* linear : layer.linears()) {
    for (const Linear::Part& part : linear->parts) {
      for (const at::Tensor& parameter : {part.weight, part.bias, part.adapter.a, part.adapter.b}) add(parameter);
    }
  }
  return parameters;
}

std::vector<Bf16Copy> trained_copies(const Weights& weights) {
  std::vector<Bf16Copy> copies = weights.copies;
  for (const Layer& layer : weights.layers) {
    for (const Linear* linear : layer.linears()) {
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
    for (Linear* linear : layer.linears()) {
      linear->a_compute = at::Tensor();
      for (Linear::Part& part : linear->parts) part.adapter = {};
    }
  }
  return base;
}

Weights allocate_weights(const ModelConfig& c, at::Device device, const ModelOptions& options, bool masters) {
  check_lora(options.lora, c);
  Weights w;
  Allocator make(device, options, masters, w);
  w.embed = make.matrix("model.embed_tokens", c.vocab_size, c.hidden_size);
  std::vector<BlockParameter> parameters;
  visit_block(c, [&](const BlockParameter& p) { parameters.push_back(p); });
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    Layer& layer = w.layers.emplace_back();
    layer.window = c.window(static_cast<size_t>(i));
    layer.local_rope = c.rotates_locally(static_cast<size_t>(i));
    make_layer(make, layer_prefix(i), parameters, layer);
  }
  w.norm = make.vector("model.norm", ".weight", c.hidden_size);
  w.head = c.tie_word_embeddings ? w.embed : make.matrix("lm_head", c.vocab_size, c.hidden_size);
  return w;
}

}  // namespace ucas

#include "model/weights.h"

#include <ATen/ops/empty.h>

#include "base/str.h"

namespace ucas {

namespace {

// Makes leaves one after another and lists them by name.
class Allocator {
 public:
  Allocator(at::Device device, std::vector<NamedTensor>& list)
      : options_(at::TensorOptions().dtype(at::kFloat).device(device)), list_(list) {}

  at::Tensor fresh(const std::string& name, at::IntArrayRef shape) { return own(name, at::empty(shape, options_)); }

  Linear linear(const std::string& prefix, std::initializer_list<std::pair<const char*, int64_t>> parts, int64_t inputs,
                bool bias = false) {
    int64_t rows = 0, first = 0;
    for (const auto& part : parts) rows += part.second;
    Linear linear;
    linear.weight = at::empty({rows, inputs}, options_);
    if (bias) linear.bias = at::empty({rows}, options_);
    for (const auto& [name, count] : parts) {
      auto leaf = [&, name = name, count = count](const at::Tensor& whole, const char* kind) {
        return own(str(prefix, name, kind), whole.narrow(0, first, count).detach());
      };
      Linear::Part& leaves = linear.parts.emplace_back();
      leaves.weight = leaf(linear.weight, ".weight");
      if (bias) leaves.bias = leaf(linear.bias, ".bias");
      first += count;
    }
    return linear;
  }

 private:
  at::Tensor own(const std::string& name, at::Tensor leaf) {
    leaf.set_requires_grad(true);
    list_.push_back({name, leaf});
    return leaf;
  }

  at::TensorOptions options_;
  std::vector<NamedTensor>& list_;
};

}  // namespace

Weights allocate_weights(const ModelConfig& c, at::Device device) {
  Weights w;
  Allocator make(device, w.parameters);
  int64_t D = c.hidden_size, F = c.intermediate_size;
  int64_t query = c.num_attention_heads * c.head_dim, key = c.num_key_value_heads * c.head_dim;
  w.embed = make.fresh("model.embed_tokens.weight", {c.vocab_size, D});
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    std::string prefix = str("model.layers.", i, "."), attention = prefix + "self_attn.", mlp = prefix + "mlp.";
    Layer& layer = w.layers.emplace_back();
    layer.input_norm = make.fresh(prefix + "input_layernorm.weight", {D});
    layer.qkv = make.linear(attention, {{"q_proj", query}, {"k_proj", key}, {"v_proj", key}}, D, c.family->qkv_bias);
    layer.out = make.linear(attention, {{"o_proj", D}}, query);
    if (c.family->qk_norm) {
      layer.q_norm = make.fresh(attention + "q_norm.weight", {c.head_dim});
      layer.k_norm = make.fresh(attention + "k_norm.weight", {c.head_dim});
    }
    layer.post_norm = make.fresh(prefix + "post_attention_layernorm.weight", {D});
    layer.gate_up = make.linear(mlp, {{"gate_proj", F}, {"up_proj", F}}, D);
    layer.down = make.linear(mlp, {{"down_proj", D}}, F);
  }
  w.norm = make.fresh("model.norm.weight", {D});
  w.head = c.tie_word_embeddings ? w.embed : make.fresh("lm_head.weight", {c.vocab_size, D});
  return w;
}

}  // namespace ucas

#include "model/weights.h"

#include <ATen/ops/empty.h>

#include "base/str.h"

namespace ucas {

Weights allocate_weights(const Qwen2Config& c, at::Device device) {
  at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(device);
  Weights w;
  auto own = [&](const std::string& name, at::Tensor leaf) {
    leaf.set_requires_grad(true);
    w.parameters.push_back({name, leaf});
    return leaf;
  };
  auto fresh = [&](const std::string& name, at::IntArrayRef shape) { return own(name, at::empty(shape, options)); };
  auto part = [&](const std::string& name, const at::Tensor& fused, int64_t first, int64_t count) {
    return own(name, fused.narrow(0, first, count).detach());
  };
  int64_t D = c.hidden_size, F = c.intermediate_size;
  int64_t query = c.num_attention_heads * c.head_dim, key = c.num_key_value_heads * c.head_dim;
  w.embed = fresh("model.embed_tokens.weight", {c.vocab_size, D});
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    std::string at_layer = str("model.layers.", i, "."), attention = at_layer + "self_attn.", mlp = at_layer + "mlp.";
    Layer layer;
    layer.qkv = at::empty({query + 2 * key, D}, options);
    layer.qkv_bias = at::empty({query + 2 * key}, options);
    layer.gate_up = at::empty({2 * F, D}, options);
    layer.input_norm = fresh(at_layer + "input_layernorm.weight", {D});
    layer.q = part(attention + "q_proj.weight", layer.qkv, 0, query);
    layer.q_bias = part(attention + "q_proj.bias", layer.qkv_bias, 0, query);
    layer.k = part(attention + "k_proj.weight", layer.qkv, query, key);
    layer.k_bias = part(attention + "k_proj.bias", layer.qkv_bias, query, key);
    layer.v = part(attention + "v_proj.weight", layer.qkv, query + key, key);
    layer.v_bias = part(attention + "v_proj.bias", layer.qkv_bias, query + key, key);
    layer.o = fresh(attention + "o_proj.weight", {D, query});
    layer.post_norm = fresh(at_layer + "post_attention_layernorm.weight", {D});
    layer.gate = part(mlp + "gate_proj.weight", layer.gate_up, 0, F);
    layer.up = part(mlp + "up_proj.weight", layer.gate_up, F, F);
    layer.down = fresh(mlp + "down_proj.weight", {D, F});
    w.layers.push_back(std::move(layer));
  }
  w.norm = fresh("model.norm.weight", {D});
  w.head = c.tie_word_embeddings ? w.embed : fresh("lm_head.weight", {c.vocab_size, D});
  return w;
}

}  // namespace ucas

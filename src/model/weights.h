// The parameters of a Qwen2 model: leaf tensors under their HF names, lying in a few fused buffers, so that q, k, v
// (and gate, up) are one matrix product each. Whoever updates a parameter must do so in place.
// Made by checkpoint.cpp, read by the forward passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/model.h"

namespace ucas {

struct Layer {
  // Leaf parameters.
  at::Tensor input_norm, q, k, v, q_bias, k_bias, v_bias, o, post_norm, gate, up, down;
  // The same storage, fused, without gradient: [(H + 2K) d, D], [(H + 2K) d], [2F, D].
  at::Tensor qkv, qkv_bias, gate_up;
};

struct Weights {
  at::Tensor embed, norm, head;  // head is embed where tied
  std::vector<Layer> layers;
  std::vector<NamedTensor> parameters;  // order: embed, layers (in HF's order), norm, lm_head if not tied
};

// Uninitialised f32 storage on `device`.
Weights allocate_weights(const Qwen2Config& config, at::Device device);

}  // namespace ucas

// The parameters of a model: leaf tensors under their HF names, those of one product in one storage (model/linear.h).
// Whoever updates a parameter must do so in place.
// Made by checkpoint.cpp, read by the forward passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/linear.h"
#include "model/model.h"

namespace ucas {

struct Layer {
  enum QkvPart : size_t { kQuery, kKey, kValue };
  enum GateUpPart : size_t { kGate, kUp };
  at::Tensor input_norm;      // [D]
  Linear qkv;                 // [(H + 2K) d, D]
  at::Tensor q_norm, k_norm;  // [d]; undefined where the family has none
  Linear out;                 // [D, H d]
  at::Tensor post_norm;       // [D]
  Linear gate_up, down;       // [2F, D], [D, F]
};

struct Weights {
  at::Tensor embed, norm, head;  // head is embed where tied
  std::vector<Layer> layers;
  std::vector<NamedTensor> parameters;  // order: embed, layers (in HF's order), norm, lm_head if not tied
};

// Uninitialised f32 storage on `device`.
Weights allocate_weights(const ModelConfig& config, at::Device device);

}  // namespace ucas

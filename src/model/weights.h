// The parameters of a model under their HF names, those of one GEMM in one matrix (model/gemm/linear.h). A parameter is
// f32 if it is trained, or if the model computes in f32; a frozen matrix of a bf16 model is bf16. GEMMs read the
// parameter itself if it has their type, else a copy that refresh() updates. Parameters must be updated in place. Made
// by checkpoint.cpp, read by the forward passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "core/model_options.h"
#include "hf/block_spec.h"
#include "hf/peft.h"
#include "model/gemm/linear.h"
#include "model/model.h"

namespace ucas {

struct Layer {
  enum QkvPart : size_t { kQuery, kKey, kValue };
  enum GateUpPart : size_t { kGate, kUp };
  at::Tensor input_norm;             // [D]; undefined where the family has none
  Linear qkv;                        // [(H + 2K) d, D]
  at::Tensor q_norm, k_norm;         // [d], or [H d] and [K d]; undefined where the family has none
  Linear out;                        // [D, H d]
  at::Tensor attention_output_norm;  // [D]; undefined where the family has none
  at::Tensor mlp_norm;               // [D]; undefined where the family has none
  Linear gate_up, down;              // [2F, D], [D, F]
  at::Tensor mlp_output_norm;        // [D]; undefined where the family has none
  int64_t window = 0;                // keys that a row sees, its own included; 0: all
  bool local_rope = false;           // rotates by the second of RopeTables

  // The parameter that is a part of hf/parameters.h's visit_block().
  at::Tensor& norm(BlockPart part);
  Linear& linear(BlockPart part);
  std::array<Linear*, 4> linears() { return {&qkv, &out, &gate_up, &down}; }
  std::array<const Linear*, 4> linears() const { return {&qkv, &out, &gate_up, &down}; }
  std::array<const at::Tensor*, 6> norms() const {
    return {&input_norm, &q_norm, &k_norm, &attention_output_norm, &mlp_norm, &mlp_output_norm};
  }
};

struct Weights {
  Matrix embed, head;  // [V, D]; one and the same where tied
  at::Tensor norm;     // [D]
  std::vector<Layer> layers;
  std::vector<NamedTensor> parameters;  // of the base; order: embed, layers (in HF's order), norm, lm_head if not tied
  std::vector<NamedTensor> adapter;     // PEFT's names; empty: none
  std::vector<Bf16Copy> copies;         // of matrices, adapters not among them
  BackwardHook* watch = nullptr;        // called by backward passes that are written by hand

  void refresh();
};

// Those of a block that are trained.
std::vector<at::Tensor> trained_parameters(const Layer& layer);

// What GEMMs read of those that are trained, of adapters too, and are no parameters themselves.
std::vector<Bf16Copy> trained_copies(const Weights& weights);

// Uninitialised storage on `device`. The tensors of an adapter: PEFT's initial values, by options.seed. `masters`:
// whether those of the base that have a bf16 copy get their memory now (else allocate_values()).
Weights allocate_weights(const ModelConfig& config, at::Device device, const ModelOptions& options = {},
                         bool masters = true);
// The same tensors without the adapter.
Weights without_adapter(const Weights& weights);
// Adds every adapter's GEMM to the matrix that it changes: W + (alpha / rank) B A, in f32.
void merge_adapter(Weights& weights);

}  // namespace ucas

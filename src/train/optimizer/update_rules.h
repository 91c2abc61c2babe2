// How one parameter is changed by its gradient: AdamW and Muon, each one function with its equations. Master
// weights are f32, arithmetic is f32; moments are kept as train/optimizer/moments.h says.
//   adamw (CPU)   own loops over elements: bits depend on nothing but the numbers
//   adamw (GPU)   the same by an own kernel, in one pass, where moments are f32
//   adamw (ATen)  torch's fused kernel over slices: any device, any moments
//   muon          GEMMs of model/gemm: on the CPU bits depend on nothing but the numbers, elsewhere as the library's do
// Called by Optimizer, which clips and counts.
#pragma once

#include <cstdint>
#include <string>

#include "core/model_options.h"
#include "model/model.h"
#include "train/optimizer/moments.h"

namespace ucas {

struct ParameterState {  // one parameter and all that is kept for it
  std::string name;
  int64_t index = 0;     // among the optimizer's parameters: part of what its roundings are sampled by
  at::Tensor parameter;  // shared with the model
  Moment mean, square;   // Muon has no square; neither where another rank keeps them
  at::Tensor
      host_master;    // its f32 values if they are on the host (train/optimizer/host_state.h); `parameter` has none
  Bf16Copy copy;      // of `parameter`, which then follows these
  int64_t first = 0;  // of a part: the number of its first element in the whole parameter
  bool by_muon = false;
  int64_t owner = 0;    // the rank that keeps its moments and updates it
  bool narrow = false;  // its bf16 copy is broadcast instead of it
  bool decays = true;
  bool dropped_gradient = false;  // it had one, of zeros (Optimizer::drop_gradients())
};

struct ParameterUpdate {
  const OptimizerConfig& config;
  int64_t steps;                 // this one counted: t of the bias correction
  double lr, clip, decay;        // gradients are multiplied by clip first
  int32_t* nonfinite = nullptr;  // on a device, where a rule that does not wait leaves what it would say
};

// Each zeroes the gradient. False if a weight or a moment is not finite afterwards.
bool adamw_on_cpu(const ParameterState& slot, const ParameterUpdate& update);
bool adamw_on_gpu(const ParameterState& slot, const ParameterUpdate& update);  // of f32 moments true; see nonfinite
bool adamw_by_aten(const ParameterState& slot, const ParameterUpdate& update);
bool muon(const ParameterState& slot, const ParameterUpdate& update);

// Muon is for the matrices between embedding and LM head: 2-D weights of the blocks, "....layers.N....".
bool is_hidden_matrix(const NamedTensor& parameter);

// In double and in a fixed order, whatever the threads. On the CPU, f32.
double sum_of_squares(const at::Tensor& tensor);

// The nearest thing to an orthogonal matrix that five Newton-Schulz iterations make of `matrix`: the same singular
// vectors, singular values between about 0.7 and 1.2.
at::Tensor orthogonalized(const at::Tensor& matrix);

}  // namespace ucas

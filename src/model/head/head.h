// The LM head on the device of its weights: statistics of given tokens, for the trainer, and sampled tokens, for the
// sampler. Both see the same logits and end in the same expressions (kernels/lm_head.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"
#include "core/signal.h"
#include "hf/parameters.h"
#include "model/gemm/gemm.h"
#include "model/tensor/autograd.h"
#include "rollout/sampling/sampler.h"

namespace ucas {

// Statistics of rows (docs/paper.md). z = logits / temperature.
struct HeadStats {
  at::Tensor logprob;               // [R] z_y - LSE
  at::Tensor entropy;               // [R] H
  at::Tensor confidence;            // [R] C = LSE - mean_v z
  at::Tensor logit;                 // [R] raw, no gradient
  at::Tensor margin;                // [R] z_y - max_v z, no gradient
  std::vector<at::Tensor> signals;  // [R] each of those requested, differentiable where it has derivatives
};

// A token to be sampled from a row of logits.
struct SampleRequest {
  int64_t row;
  SampleKey key;
  bool greedy;
};

// Samples on the device of the logits; one for a run, it owns its scratch memory.
class TokenSampler {
 public:
  virtual ~TokenSampler() = default;
  // One for each ask; rows that are not finite give token -1.
  virtual std::vector<SampledToken> sample(const at::Tensor& logits, std::span<const SampleRequest> asks) = 0;
};

class Head {
 public:
  explicit Head(Matrix weight) : weight_(std::move(weight)) {}
  virtual ~Head() = default;
  const Matrix& weight() const { return weight_; }  // [V, D]; the embedding matrix where tied
  const Work& work() const { return work_; }        // all that it has computed so far
  void note_logits(int64_t rows) const;             // counts a step whose logits a Decoder computes by itself

  // One autograd function, chunked over tokens and vocabulary, never holding [R, V] of more than a few rows. `hidden`
  // is f32; logits are f32 sums of GEMMs in the matrix's type. Backward adds to the matrix's gradient in place.
  HeadStats stats(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature,
                  std::span<const TokenSignal> signals = {}) const;
  // Of so many rows at a time stats() computes the logits once for both passes; the numbers are the same.
  virtual int64_t rows_at_once() const { return std::numeric_limits<int64_t>::max(); }
  // [n, V] f32, bit-equal to what stats() sees.
  at::Tensor logits(const at::Tensor& hidden) const;
  virtual std::unique_ptr<Head> over(Matrix weight) const = 0;  // the same computation with another matrix
  // This one takes the rows to the host; a device of its own kernels overrides it.
  virtual std::unique_ptr<TokenSampler> make_sampler(const SamplingConfig& config) const;

 protected:
  virtual HeadStats compute(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature,
                            std::span<const TokenSignal> signals, bool wants_gradient) const = 0;

  // The same with logprob, entropy, confidence and those signals tied to `inputs`: `backward` gets their gradients.
  static HeadStats with_gradient(HeadStats stats, std::span<const TokenSignal> signals,
                                 const std::vector<at::Tensor>& inputs, Backward backward);

 private:
  Matrix weight_;
  mutable Work work_;
};

std::unique_ptr<Head> make_native_head(Matrix weight);  // CPU: own kernels
std::unique_ptr<Head> make_aten_head(Matrix weight);    // any device

}  // namespace ucas

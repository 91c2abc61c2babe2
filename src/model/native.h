// The forward and backward pass on the CPU in f32: own row kernels (kernels/kernels.h) around GEMMs whose row count is
// a multiple of 16, which makes every row of a result bit-equal whatever stands beside it. Decoding, prefill and
// training run the same code; what differs is where keys and values lie and whether activations are kept.
// Legend: R rows, P = R rounded up to a multiple of 16, D width, N = (H + 2K) d, F MLP width.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/rope.h"
#include "model/weights.h"

namespace ucas {

// Where a row's key and value go, in floats from a layer's start; its head k lies k * head floats further.
struct Place {
  int64_t key = 0, key_head = 0;
  int64_t value = 0, value_head = 0;
  int64_t position = 0;
};

// What the backward of one layer needs.
struct KeptLayer {
  at::Tensor x;         // [P, D] input
  at::Tensor qkv;       // [P, N] after bias and rotation
  at::Tensor attended;  // [P, H d]
  at::Tensor norm;      // [P, H, 2] of the attention weights
  at::Tensor middle;    // [P, D] after attention
  at::Tensor gate_up;   // [P, 2F]
};
struct Kept {
  std::vector<int32_t> token, position;
  std::vector<int64_t> begin;
  std::vector<KeptLayer> layers;
  at::Tensor last;  // [P, D] before the final norm
};

class NativeForward {
 public:
  NativeForward(const Qwen2Config& config, const Weights& weights);

  // Differentiable when gradients are on.
  at::Tensor hidden(const Packed& packed);
  std::unique_ptr<KvCache> make_cache(int64_t slots, int64_t length);
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots);
  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache);

 private:
  struct Stage;  // storage of keys and values
  at::Tensor run(std::span<const int32_t> token, std::span<const Place> places, const Stage& stage, Kept* kept);
  void attention(const Layer& layer, std::span<const Place> places, float* key, float* value, KeptLayer& kept);

  const Qwen2Config& config_;
  const Weights& weights_;
  RopeTable rope_;
};

// Gradients of all parameters, in their order, from d loss / d hidden [R, D].
std::vector<at::Tensor> native_backward(const Qwen2Config& config, const Weights& weights, const RopeTable& rope,
                                        Kept& kept, const at::Tensor& d_hidden);

// Rows that are worth a thread of their own when each is about `work` simple operations: some 20 us.
inline int64_t grain_of(int64_t work) { return work >= 131072 ? 1 : 131072 / (work > 0 ? work : 1); }

constexpr int64_t kRowAlign = 16;
inline int64_t aligned(int64_t rows) { return (rows + kRowAlign - 1) / kRowAlign * kRowAlign; }

}  // namespace ucas

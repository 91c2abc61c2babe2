// The forward pass in plain ATen operations and autograd: any device. On the CPU in f32 native.h is used instead, and
// this path is what it is checked against.
#pragma once

#include <memory>
#include <span>

#include "model/rope.h"
#include "model/weights.h"

namespace ucas {

class GenericForward {
 public:
  GenericForward(const Qwen2Config& config, const Weights& weights);

  at::Tensor hidden(const Packed& packed);
  std::unique_ptr<KvCache> make_cache(int64_t slots, int64_t length);
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots);
  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache);

 private:
  struct Rows;  // tokens with their rotary angles
  Rows rows(std::span<const int32_t> token, std::span<const int32_t> position);
  // `attend` gets a layer's q [R, H, d], k and v [R, K, d] and gives [R, H, d].
  template <class Attend>
  at::Tensor run(const Rows& rows, Attend attend);
  at::Tensor packed_forward(const Packed& packed, KvCache* cache, std::span<const int64_t> slots);

  const Qwen2Config& config_;
  const Weights& weights_;
  RopeTable rope_;
};

}  // namespace ucas

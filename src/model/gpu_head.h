// The LM head on a device with kernels of its own: statistics and their gradient over all rows and gpu::kHeadTile
// columns at a time, and tokens drawn where the logits lie.
#pragma once

#include "model/gpu_block.h"
#include "model/head.h"

namespace ucas {

std::unique_ptr<Head> make_gpu_head(Matrix weight);

// Draws a token for every row of logits; what it needs stays between calls, so that it can be recorded.
class GpuDraw {
 public:
  GpuDraw(const Kernels& kernels, int64_t rows, int64_t vocab, const SamplingConfig& sampling);

  gpu::DrawState state_of(const SampleKey& key, bool greedy) const;
  // Where the keys of the rows' draws are put before, and what was drawn lies after, [rows] gpu::DrawState and
  // gpu::DrawnToken as bytes.
  const at::Tensor& state() const { return state_; }
  const at::Tensor& drawn() const { return drawn_; }
  // logits [rows, V] f32. With `token` and `position`, drawn tokens are fed there.
  void run(const at::Tensor& logits, const SampleKey& key, bool any_greedy, const at::Tensor& token = {},
           const at::Tensor& position = {}) const;

 private:
  at::Tensor tile_stats(const at::Tensor& logits, float inverse_temperature) const;
  const Kernels kernels_;
  int64_t rows_, vocab_;
  float inverse_temperature_;
  bool all_greedy_;
  at::Tensor state_, drawn_;
};
// Whether it can draw so; else a host must (model/decoder.cpp).
bool draws_on_device(const SamplingConfig& sampling);
Drawn drawn_of(const gpu::DrawnToken& token);

}  // namespace ucas

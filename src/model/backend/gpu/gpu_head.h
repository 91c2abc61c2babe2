// The LM head on a device with kernels of its own: statistics and their gradient over all rows and gpu::kHeadTile
// columns at a time, and tokens sampled on the device of the logits.
#pragma once

#include "model/backend/gpu/gpu_block.h"
#include "model/head/head.h"

namespace ucas {

std::unique_ptr<Head> make_gpu_head(Matrix weight);

// Rows of a tile's logits buffer, at most (32 MiB).
constexpr int64_t kGpuHeadRows = 4096;
// Those that are computed together, of so many.
int64_t rows_of_head_part(int64_t rows);

// Samples a token for every row of logits; its buffers stay between calls, so that it can be recorded.
class DeviceSampler {
 public:
  DeviceSampler(const Kernels& kernels, int64_t rows, int64_t vocab, const SamplingConfig& sampling);

  gpu::SamplerState state_of(const SampleKey& key, bool greedy) const;
  // Inputs of the sampler before the call and its results after, [rows] gpu::SamplerState and gpu::DeviceSampledToken
  // as bytes; `of_run` what all rows share, one gpu::SamplerRun.
  const at::Tensor& of_run() const { return of_run_; }
  const at::Tensor& state() const { return state_; }
  const at::Tensor& sampled() const { return sampled_; }
  // logits [rows, V] f32. With `token` and `position`, sampled tokens are fed there.
  void run(const at::Tensor& logits, bool any_greedy, const at::Tensor& token = {},
           const at::Tensor& position = {}) const;

 private:
  at::Tensor tile_stats(const at::Tensor& logits, float inverse_temperature) const;
  const Kernels kernels_;
  int64_t rows_, vocab_;
  float inverse_temperature_;
  bool all_greedy_;
  const SamplingConfig sampling_;
  at::Tensor of_run_, state_, sampled_;
};
SampledToken sampled_of(const gpu::DeviceSampledToken& token);

}  // namespace ucas

// Forward on a device with kernels of its own; see gpu_forward.cpp.
#pragma once

#include "model/backend/gpu/gpu_block.h"
#include "model/backend/gpu/gpu_cache.h"
#include "model/transformer.h"

namespace ucas {

// Rows of a decoding step, where the device reads them. P: a multiple of kRowAlign.
struct DecodeRows {
  at::Tensor token, position, slot;  // [P] int32
  int64_t most_blocks;               // of any row: its position is in the last of them at most
};

class GpuForward final : public Forward {
 public:
  GpuForward(const ModelConfig& config, const Weights& weights, const ModelOptions& options);

  at::Tensor hidden(const Packed& packed) override;
  bool shares_prefixes() const override { return true; }
  std::unique_ptr<KvCache> make_cache(const KvBudget& room) override;
  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) override;
  std::unique_ptr<Decoder> make_decoder(Head& head, KvCache& cache, const SamplingConfig& sampling) override;

  // [P, D] f32. Nothing here waits for the device, so it can be recorded.
  at::Tensor decode_rows(const DecodeRows& rows, GpuCache& cache);
  void reach(int64_t position) { rope_.reach(position); }  // before decode_rows
  const Kernels& kernels() const { return kernels_; }

 private:
  at::Tensor run(const GpuRows& rows, const GpuStore& store, GpuCache* cache, GpuSavedForBackward* saved);

  const ModelConfig& config_;
  const BlockShape shape_;
  const Weights& weights_;
  const Recompute recompute_;
  const Kernels kernels_;
  GpuRope rope_;
};

}  // namespace ucas

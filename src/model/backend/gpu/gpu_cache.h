// Keys and values on a device, in blocks of gpu::kBlockTokens tokens that slots own or share: the whole blocks of a
// prompt serve all of its responses. Slots take blocks as they grow; there may be fewer than all slots at full length
// would need.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gpu/kernels.h"
#include "model/backend/block.h"
#include "model/model.h"

namespace ucas {

// Tokens that a device may decode beyond a response's end before the host looks.
constexpr int64_t kStepsAhead = 8;

class GpuCache final : public KvCache {
 public:
  GpuCache(const BlockShape& shape, int64_t slots, int64_t length, int64_t tokens, at::Device device);
  ~GpuCache() override;  // its memory is training's then
  int64_t slots() const override { return slots_; }
  int64_t length() const override { return length_; }
  void copy(int64_t from_slot, int64_t to_slot, int64_t tokens) override;

  void release(int64_t slot) override;
  bool reserve(int64_t slot, int64_t tokens) override;  // blocks for so many, those that it has among them
  int64_t free_tokens() const override { return static_cast<int64_t>(free_.size()) * gpu::kBlockTokens; }
  void upload();                                 // the table, where it has changed; before the device reads it
  int64_t spare_slot() const { return slots_; }  // for rows of padding: has room for kStepsAhead tokens
  gpu::Cache layer(int64_t index) const;

 private:
  int64_t slots_, length_, blocks_of_slot_, block_numbers_, layers_;
  std::vector<int32_t> free_, users_;         // blocks; how many slots use each
  std::vector<std::vector<int32_t>> blocks_;  // of each slot
  bool changed_ = true;
  at::Tensor storage_;       // [layers, blocks, block_numbers]
  at::Tensor host_, table_;  // [slots + 1, blocks_of_slot]
};

}  // namespace ucas

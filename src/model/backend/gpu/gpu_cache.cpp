#include "model/backend/gpu/gpu_cache.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "base/error.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

int64_t blocks_for(int64_t tokens) { return (tokens + gpu::kBlockTokens - 1) / gpu::kBlockTokens; }

}  // namespace

GpuCache::GpuCache(const BlockShape& s, int64_t slots, int64_t length, int64_t tokens, at::Device device)
    : slots_(slots),
      length_(length),
      blocks_of_slot_(blocks_for(length + kStepsAhead)),
      block_numbers_(gpu::block_numbers(s.K, s.d)),
      layers_(s.config.num_hidden_layers),
      blocks_(slots + 1) {
  // One slot at full length must always find room, and so must the padding.
  const int64_t whole = slots * blocks_of_slot_, some = std::max(blocks_for(tokens), blocks_of_slot_);
  const int64_t count = (tokens > 0 ? std::min(whole, some) : whole) + 1;
  users_.assign(count, 0);
  for (int64_t block = count; block-- > 0;) free_.push_back(static_cast<int32_t>(block));
  release_unused(device);
  storage_ = at::empty({layers_, count, block_numbers_}, at::TensorOptions().dtype(at::kBFloat16).device(device));
  host_ = at::zeros({slots + 1, blocks_of_slot_}, at::kInt);
  table_ = at::zeros({slots + 1, blocks_of_slot_}, at::TensorOptions().dtype(at::kInt).device(device));
  reserve(spare_slot(), kStepsAhead);
}

GpuCache::~GpuCache() {
  const at::Device device = storage_.device();
  storage_.reset();
  release_unused(device);
}

void GpuCache::release(int64_t slot) {
  for (const int32_t block : blocks_[slot]) {
    if (--users_[block] == 0) free_.push_back(block);
  }
  blocks_[slot].clear();
}

bool GpuCache::reserve(int64_t slot, int64_t tokens) {
  std::vector<int32_t>& own = blocks_[slot];
  UCAS_CHECK(blocks_for(tokens) <= blocks_of_slot_, "tokens must fit into the KV cache");
  while (static_cast<int64_t>(own.size()) < blocks_for(tokens)) {
    if (free_.empty()) return false;
    const int32_t block = free_.back();
    free_.pop_back();
    users_[block] = 1;
    host_.data_ptr<int32_t>()[slot * blocks_of_slot_ + static_cast<int64_t>(own.size())] = block;
    own.push_back(block);
    changed_ = true;
  }
  return true;
}

// Whole blocks are shared; the one that the next token goes to is copied.
void GpuCache::copy(int64_t from_slot, int64_t to_slot, int64_t tokens) {
  release(to_slot);
  int32_t* row = host_.data_ptr<int32_t>() + to_slot * blocks_of_slot_;
  for (int64_t i = 0; i < tokens / gpu::kBlockTokens; ++i) {
    const int32_t block = blocks_[from_slot][i];
    ++users_[block];
    blocks_[to_slot].push_back(block);
    row[i] = block;
  }
  changed_ = true;
  if (tokens % gpu::kBlockTokens == 0) return;
  const int32_t from = blocks_[from_slot][tokens / gpu::kBlockTokens];
  UCAS_CHECK(reserve(to_slot, tokens), "the KV cache must have room before a copy");
  storage_.select(1, blocks_[to_slot].back()).copy_(storage_.select(1, from));
}

void GpuCache::upload() {
  if (!changed_) return;
  table_.copy_(host_);
  changed_ = false;
}

gpu::Cache GpuCache::layer(int64_t index) const {
  return {.layer = data<Bf16>(storage_) + index * storage_.size(1) * block_numbers_,
          .block_stride = block_numbers_,
          .table = table_.const_data_ptr<int32_t>(),
          .blocks_of_slot = blocks_of_slot_};
}

}  // namespace ucas

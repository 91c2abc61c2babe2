// How many responses and prompts the rollout engine holds at once, and in how much room: what it allocates and what
// `ucas plan` counts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sampling/engine_config.h"

namespace ucas {

constexpr int64_t kLogitBytes = int64_t{64} << 20;  // of one [rows, V] block of logits
constexpr int64_t kMostSlots = 256;                 // where max_slots is 0; more gain nothing (bench_rollout)
constexpr int64_t kMostGpuSlots = 1024;             // there: weights are read for more at once (bench_gpu)
constexpr int64_t kCacheMb = 2048;                  // where cache_mb is 0
constexpr int64_t kMostPromptSlots = 32;

struct EngineRoom {
  int64_t slots = 0;         // responses decoded at once
  int64_t prompt_slots = 0;  // prompts whose samples are not all admitted yet
  int64_t length = 0;        // tokens a slot can hold
  int64_t tokens = 0;        // that all slots hold together at most; 0: each its full length
};

// For `samples` responses to `prompts`; keys and values of a token take `token_bytes`. gpu_free: memory of a GPU in
// bytes, 0 on the CPU.
inline EngineRoom engine_room(const EngineConfig& config, int64_t prompts, int64_t samples, int64_t length,
                              int64_t token_bytes, int64_t gpu_free = 0) {
  EngineRoom room{.slots = config.max_slots, .length = length};
  const int64_t by_itself = gpu_free > 0 ? gpu_free / 2 : kCacheMb << 20;
  const int64_t cache = config.cache_mb > 0 ? config.cache_mb << 20 : by_itself;
  if (gpu_free > 0) room.tokens = std::max<int64_t>(cache / std::max<int64_t>(token_bytes, 1), 1);
  if (config.cache_tokens > 0) room.tokens = config.cache_tokens;
  if (room.slots == 0) {
    // Slots of a GPU share their memory: half of the longest response is room enough for most.
    const int64_t slot_bytes = std::max<int64_t>(token_bytes * length / (gpu_free > 0 ? 2 : 1), 1);
    room.slots = std::clamp<int64_t>(cache / slot_bytes, 1, gpu_free > 0 ? kMostGpuSlots : kMostSlots);
  }
  room.slots = std::min(room.slots, samples);
  room.prompt_slots = std::clamp<int64_t>(std::min(room.slots / 8, prompts), 1, kMostPromptSlots);
  return room;
}

// Rows of logits drawn from at a time.
inline int64_t logit_rows(int64_t vocab) {
  return std::max<int64_t>(kLogitBytes / (vocab * static_cast<int64_t>(sizeof(float))) / 16 * 16, 16);
}

}  // namespace ucas

// How many responses and prompts the rollout engine holds at once, and in how much room: what it allocates and what
// `ucas plan` counts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kernels.h"
#include "rollout/sampling/config.h"

namespace ucas {

constexpr int64_t kLogitBytes = int64_t{64} << 20;  // of one [rows, V] block of logits
constexpr int64_t kMostSlots = 256;                 // where max_slots is 0; more gain nothing (bench_rollout)
constexpr int64_t kMostGpuSlots = 1024;             // there: weights are read for more at once (bench_gpu)
constexpr int64_t kCacheMb = 2048;                  // where cache_mb is 0
constexpr int64_t kMostPromptSlots = 32;
constexpr int64_t kPromptsOfAGroup = 4;

struct KvBudget {
  int64_t slots = 0;         // responses decoded at once
  int64_t prompt_slots = 0;  // prompts whose samples are not all admitted yet
  int64_t length = 0;        // tokens a slot can hold
  int64_t tokens = 0;        // that all slots hold together at most; 0: each its full length
  // On the CPU, where that takes less: `prompts` prompts of `prompt` tokens have places that their responses read, too,
  // and a response's slot holds the `own` tokens beyond the whole tiles of its prompt. 0: every slot is whole.
  int64_t own = 0, prompts = 0, prompt = 0;

  bool shares() const { return own > 0; }
  // Tokens that the CPU's cache has room for: all in whole tiles.
  int64_t held() const {
    if (!shares()) return (slots + prompt_slots) * 16 * kernels::tiles_of(length);
    return 16 * (slots * kernels::tiles_of(own) + prompts * kernels::tiles_of(prompt));
  }
};

// Tokens of the longest prompt, response, and both together.
struct LongestTokens {
  int64_t whole = 0, prompt = 0, response = 0;
};

// What it takes to share the prompts of so many slots. Of a prompt, the tile in which it ends is each response's own.
// Responses active may be of as many prompts as their slots would hold whole groups, times kPromptsOfAGroup: the
// long ones of a group keep its prompt, and the engine waits with others where there are more such.
inline KvBudget shared_budget(KvBudget room, int64_t prompts, int64_t samples, const LongestTokens& longest) {
  room.prompt_slots = std::clamp<int64_t>(std::min(room.slots / 8, prompts), 1, kMostPromptSlots);
  const int64_t groups = (room.slots * prompts + samples - 1) / std::max<int64_t>(samples, 1);
  room.own = longest.response + 15;
  room.prompts = std::min(std::min(room.slots, kPromptsOfAGroup * groups) + room.prompt_slots, prompts);
  room.prompt = longest.prompt;
  return room;
}

// Of a GPU with `total` bytes, what tensors may take: a sixteenth is left to CUDA's context, the libraries' workspaces
// and fragmentation.
inline int64_t usable_gpu(int64_t total) { return total - total / 16; }

// For `samples` responses to `prompts`; keys and values of a token take `token_bytes`. gpu_free: bytes of a GPU that
// weights and all else that stays leave, by rule (usable_gpu), not what happens to be free at this moment: the number
// of responses decoded at once decides which GEMMs run, and so the bits. 0 on the CPU.
inline KvBudget kv_budget(const EngineConfig& config, int64_t prompts, int64_t samples, const LongestTokens& longest,
                          int64_t token_bytes, int64_t gpu_free = 0) {
  const int64_t length = longest.whole;
  KvBudget room{.slots = config.max_slots, .length = length};
  const int64_t by_itself = gpu_free > 0 ? gpu_free / 4 * 3 : kCacheMb << 20;
  const int64_t cache = config.cache_mb > 0 ? config.cache_mb << 20 : by_itself;
  if (gpu_free > 0) room.tokens = std::max<int64_t>(cache / std::max<int64_t>(token_bytes, 1), 1);
  if (config.cache_tokens > 0) room.tokens = config.cache_tokens;
  if (room.slots == 0 && gpu_free > 0) {
    room.slots = kMostGpuSlots;  // they share the memory: a response begins where blocks are free (rollout/engine.cpp)
  } else if (room.slots == 0) {
    const int64_t slot_bytes = std::max<int64_t>(token_bytes * length, 1);
    room.slots = std::clamp<int64_t>(cache / slot_bytes, 1, kMostSlots);
    while (room.slots < std::min(samples, kMostSlots)) {
      KvBudget more = room;
      ++more.slots;
      if (shared_budget(more, prompts, samples, longest).held() * token_bytes > cache) break;
      room = more;
    }
  }
  room.slots = std::min(room.slots, samples);
  const KvBudget shared = shared_budget(room, prompts, samples, longest);
  room.prompt_slots = shared.prompt_slots;
  return gpu_free == 0 && shared.held() < room.held() ? shared : room;
}

// Rows of logits sampled from at a time.
inline int64_t logit_rows(int64_t vocab) {
  return std::max<int64_t>(kLogitBytes / (vocab * static_cast<int64_t>(sizeof(float))) / 16 * 16, 16);
}

}  // namespace ucas

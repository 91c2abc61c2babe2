// Bytes of a model and of what passes through it on the CPU: the sizes that model/weights.cpp, model/backend/block.h,
// model/backend/cpu/native.cpp, model/backend/cpu/native_backward.cpp, model/head/head.cpp and
// train/optimizer/moments.cpp allocate, as functions of shapes. That they agree is held by train/loop/plan_test.cpp.
// Legend of shapes: model/backend/block.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model_options.h"
#include "hf/parameters.h"
#include "rollout/sampling/kv_budget.h"

namespace ucas {

// What is held of a model all the time.
struct ModelMemory {
  int64_t weights = 0;    // what GEMMs read, and all that is f32 anyway
  int64_t masters = 0;    // f32 masters of trained matrices, adapters too, with bf16 copies
  int64_t adapter = 0;    // low-rank matrices and their copies, but for masters
  int64_t gradients = 0;  // f32, from the first backward pass of a step to its last update
  int64_t passing = 0;    // of these, what a backward pass has at once: those outside of blocks, and of one block
  int64_t moments = 0;
  int64_t largest = 0;          // elements of the largest tensor
  int64_t largest_trained = 0;  // and of the largest that is trained
  int64_t muon = 0;             // what Muon takes for one matrix while it updates it
  int64_t stored = 0;           // elements of its own weight files
  int64_t trained = 0;          // elements
  int64_t offload = 0;          // on the device, of masters and moments on the host: three buffers of parts
  int64_t kept() const { return weights + masters + adapter + gradients + moments; }
};
// Elements of such a part (kOffloadSlice of train/optimizer/host_state.h); a matrix under Muon is one.
constexpr int64_t kOffloadedPart = int64_t{1} << 22;
// `head`: whether the LM head is trained where it is a matrix of its own (a critic leaves it out).
ModelMemory model_memory(const ModelConfig& config, const ModelOptions& options, const OptimizerConfig* optimizer,
                         bool head = true);

// glibc gives larger blocks back to the system when they are freed; smaller ones lie between others that stay, and wait
// to be used again (DEFAULT_MMAP_THRESHOLD_MAX).
constexpr int64_t kPooledBelow = int64_t{32} << 20;

// One instant of a pass.
struct PassMemory {
  int64_t activations = 0;  // what stays of the blocks' forward
  int64_t scratch = 0;      // rows that come and go
  int64_t logits = 0;       // of the LM head, in tiles
  int64_t pooled = 0;       // of the first two, tensors that the C library keeps when they are freed (kPooledBelow)
  std::string note;         // of the activations, for people
  int64_t total() const { return activations + scratch + logits; }
};

struct PassShape {
  int64_t rows = 0;    // tokens of the largest micro-batch
  int64_t length = 0;  // of the longest sequence
  int64_t threads = 1;
  bool head = true, gpu = false;  // whether it ends in the LM head (a critic: in one number a row)
};
// The largest instant of scoring rows, and of a forward and backward pass.
PassMemory forward_memory(const ModelConfig& config, const ModelOptions& options, const PassShape& shape);
PassMemory backward_memory(const ModelConfig& config, const ModelOptions& options, const PassShape& shape);

// A token of one slot of the rollout's cache, in all layers, value rows padded.
int64_t cache_token_bytes(const ModelConfig& config, Dtype dtype);
int64_t cache_bytes(const ModelConfig& config, Dtype dtype, const KvBudget& room);
// Decoding and prefill without the cache. `prompt` is the longest prompt.
PassMemory generate_memory(const ModelConfig& config, const ModelOptions& options, const KvBudget& room,
                           const EngineConfig& engine, int64_t prompt, int64_t threads, bool cut, bool gpu);

}  // namespace ucas

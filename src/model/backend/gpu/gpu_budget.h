// What a training pass and a decoding step of the kernels compute and move, part by part, counted from shapes alone:
// floating-point operations (a multiply-add is two) and bytes of device memory when each kernel and GEMM reads its
// inputs and writes its outputs once. So no time, but the least one on a device whose limits are known. Holds for what
// runs without UCAS_TRY and recomputation, and for families with `Qwen2`'s or `Qwen3`'s block. Not in it: fills and
// copies by LibTorch. Read by bench_gpu what=budget; a test counts the same in CPU emulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hf/model_config.h"
#include "model/tensor/variants.h"

namespace ucas {

struct BudgetPart {
  std::string group, name;  // name: of a kernel of gpu::Table, or of GEMMs, or of LibTorch's operation
  double calls = 0, operations = 0, bytes = 0;
};

// Forward and backward of one micro-batch of `rows` tokens in sequences of `sequence`, all parameters trained, and the
// LM head's statistics of all rows with their gradient.
std::vector<BudgetPart> training_budget(const ModelConfig& config, int64_t rows, int64_t sequence, HeadLogits head);

// The forward pass alone, and the statistics of all rows: old log-probs.
std::vector<BudgetPart> scoring_budget(const ModelConfig& config, int64_t rows, int64_t sequence);

// One step of `lanes` sampled sequences, each of which attends to `keys` keys, its own included. `truncated`: the most
// that top_k, top_p and min_p read (docs/gpu.md).
std::vector<BudgetPart> decoding_budget(const ModelConfig& config, int64_t lanes, int64_t keys, bool truncated);

// One update of all parameters with moments of 32, 16 or 8 bits, the norm of the gradients included.
std::vector<BudgetPart> update_budget(const ModelConfig& config, int64_t bits);

}  // namespace ucas

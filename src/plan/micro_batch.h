// How well a micro-batch fills a GPU: a GEMM runs in waves of one output tile on each multiprocessor, and the last wave
// of too few tiles costs as much as a full one.
// Fed by plan/plan.h's models; read by `ucas plan --gpu`.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"
#include "plan/step_time.h"

namespace ucas {

// Share of the multiprocessors' time that the blocks' forward GEMMs of so many rows use, by tiles of 128 rows x 256
// columns, bf16: those of an H100 at its best. cuBLAS may choose others, which lose less. Counted, not timed.
double tile_share(const ModelConfig& model, int64_t rows, int64_t multiprocessors);

// A size of update.micro_batch_tokens that fills the device: a multiple of half its multiprocessors x 128 rows, so that
// any width that is a multiple of 512 gives whole waves. The least from 16,384 tokens on that fits its memory
// with_spare(), else the largest that does.
struct MicroBatchProposal {
  int64_t tokens = 0;            // 0: none that is better by 2 % or more
  double share = 0, before = 0;  // tile_share of it and of the config's
  int64_t peak = 0;              // of the memory plan, bytes
};
MicroBatchProposal propose_micro_batch(const TrainConfig& config, const PlannedModels& models, const Device& device);

// One line, "" without a proposal.
std::string proposal_text(const MicroBatchProposal& proposal, const TrainConfig& config, const Device& device);

}  // namespace ucas
